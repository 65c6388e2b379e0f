"""Which layers see what: by list, or by the rule of the model's class."""

from typing import Any

import pytest

from app.calc.model.layers.grouped_attention import GroupedAttention
from app.checkpoint.reading import ConfigError, read_config
from tests.checkpoint.published import config, nested

FULL, SLIDING = "full_attention", "sliding_attention"


def spans(given: dict[str, Any]) -> list[int | str | None]:
    """The window of each layer, None for everything, and "c" with the number for a chunk."""
    architecture = read_config(given, "Mine").architecture
    found: list[int | str | None] = []
    for number in architecture.order:
        mixer = architecture.layers[number].mixer
        assert isinstance(mixer, GroupedAttention)
        found.append(mixer.window if mixer.chunk is None else f"c{mixer.chunk}")
    return found


def small(model_type: str, **more: Any) -> dict[str, Any]:
    return config("llama-3.1-8b", model_type=model_type, num_hidden_layers=6, sliding_window=512, **more)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (small("llama"), [None] * 6),
        (small("mistral"), [512] * 6),
        (small("phi3"), [512] * 6),
        (small("gemma2"), [512, None] * 3),
        (small("gemma3_text"), [512] * 5 + [None]),
        (small("gemma3_text", sliding_window_pattern=3), [512, 512, None] * 2),
        (small("cohere2"), [512] * 3 + [None] + [512] * 2),
        (small("olmo3"), [512] * 3 + [None] + [512] * 2),
        (small("exaone4", sliding_window_pattern="LLG"), [512, 512, None] * 2),
        (small("exaone4", sliding_window_pattern="L"), [512] * 5 + [None]),
        (small("exaone4", sliding_window_pattern=2), [512, None] * 3),
        (small("exaone4"), [None] * 6),
        (small("qwen2"), [None] * 6),
        (small("qwen2", use_sliding_window=True, max_window_layers=4), [None] * 4 + [512] * 2),
        (small("qwen3", layer_types=[SLIDING, FULL] * 3), [512, None] * 3),
        (small("mistral", layer_types=[FULL] * 6), [None] * 6),
    ],
)
def test_windows(given: dict[str, Any], expected: list[int | None]) -> None:
    assert spans(given) == expected


def test_chunks_of_llama_4() -> None:
    assert spans(nested("llama-4-scout", num_hidden_layers=4)) == ["c8192"] * 3 + [None]
    listed = nested("llama-4-scout", num_hidden_layers=4, no_rope_layers=[0, 1, 1, 0], attention_chunk_size=1024)
    assert spans(listed) == [None, "c1024", "c1024", None]


@pytest.mark.parametrize(
    ("given", "key"),
    [
        (small("exaone4", sliding_window_pattern="LXG"), "sliding_window_pattern"),
        (small("exaone4", sliding_window_pattern=0), "sliding_window_pattern"),
        (small("gemma2") | {"sliding_window": None}, "sliding_window"),
        (small("llama", layer_types=[SLIDING] * 6) | {"sliding_window": None}, "sliding_window"),
        (small("llama", layer_types=[FULL] * 5), "layer_types"),
        (small("llama", layer_types=["mamba"] * 6), "layer_types"),
        (small("qwen2", use_sliding_window="yes"), "use_sliding_window"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(given, "Mine")
    assert caught.value.key == key
