"""Whatever a stranger sends, a reading or a `ConfigError` with the key comes out, soon and in little memory."""

import copy
import math
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.calc.model.parameters import count_parameters, weight_bytes
from app.checkpoint.reading import ConfigError, Reading, read_config
from tests.checkpoint.published import config, entries

MOST_SECONDS = 10  # a hang, not a speed: the machine may be busy
"""Of processor time. A reading takes 1 ms; the rest is for a machine that is shared."""


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"text_config": value, "a": [value]} if isinstance(value, int) else {"text_config": value}
    return value


JUNK: list[Any] = [
    None, True, False, 0, -1, 1, 7, 10**18, 10**400, 0.0, 0.5, 1e308, math.nan, math.inf, -math.inf,
    "", "4096", "llama", "\x00\x1b[31m\n", "é" * 1000, "x" * 100_000, "re:((a+)+)+$", "../../etc/passwd", "{{7*7}}",
    [], [None], [[]], [1] * 1000, ["full_attention"] * 10_001, list(range(100)), [{}], [math.nan], [True, False],
    {}, {"a": 1}, {"": None}, deep(200), {"num_bits": 4}, {"quant_method": "gptq"}, b"bytes", (1, 2), object(),
]  # fmt: skip


def named(junk: Any) -> str:
    """A short name without an address, which is another in each test process."""
    return repr(junk).partition(" at 0x")[0][:24]


def attempt(given_config: Any, **options: Any) -> Reading | ConfigError:
    """A reading or a refusal; anything else that is raised fails the test."""
    try:
        return read_config(given_config, "Mine", **options)
    except ConfigError as error:
        return error


def survives(given_config: Any, **options: Any) -> Reading | None:
    """The reading, or None for a refusal, which must be fit to be shown."""
    started = time.process_time()
    result = attempt(given_config, **options)
    assert time.process_time() - started < MOST_SECONDS
    if isinstance(result, ConfigError):
        assert result.key
        assert result.message.endswith(".")
        assert len(str(result)) < 3000
        assert str(result).isprintable()
        return None
    assert len(result.architecture.order) == result.architecture.n_layers
    counts = count_parameters(result.architecture)
    assert counts.total > 0
    assert weight_bytes(counts, result.plan) > 0
    return result


@pytest.mark.parametrize("junk", JUNK, ids=named)
def test_no_object_of_keys_is_refused(junk: Any) -> None:
    survives(junk)


@pytest.mark.parametrize(
    "name",
    ["llama-3.1-8b", "gpt-oss-20b", "deepseek-v4-flash", "kimi-linear-48b-a3b", "step-3.5-flash", "hunyuan-a13b"],
)
def test_every_key_stands_every_kind_of_junk(name: str) -> None:
    for key in config(name):
        for junk in JUNK:
            survives(config(name, **{key: junk}))


@pytest.mark.parametrize("name", ["gemma-4-26b-a4b", "qwen3.5-27b", "kimi-k3", "llama-4-scout", "mistral-large-3"])
def test_every_key_of_a_block_stands_every_kind_of_junk(name: str) -> None:
    whole = config(name)
    for block, inside in whole.items():
        if not isinstance(inside, dict):
            continue
        for key in inside:
            for junk in JUNK:
                survives(whole | {block: inside | {key: junk}})


@pytest.mark.parametrize("junk", JUNK, ids=named)
def test_settings_of_quantization_stand_it_too(junk: Any) -> None:
    base = config("llama-3.1-8b")
    survives(base | {"quantization_config": junk})
    survives(base, quantization=junk)
    survives(base, quantization={"quantization": junk})
    for method in ("fp8", "gptq", "awq", "mxfp4", "compressed-tensors", "modelopt", "quark", "bitsandbytes"):
        for key in ("bits", "group_size", "weight_block_size", "ignore", "modules_to_not_convert", "config_groups",
                    "quant_algo", "kv_cache_scheme", "global_quant_config", "load_in_4bit"):  # fmt: skip
            survives(base | {"quantization_config": {"quant_method": method, key: junk}})


def test_enormous_sizes_are_refused_without_being_built() -> None:
    tracemalloc.start()
    for changes, key in (
        ({"num_hidden_layers": 10**18}, "num_hidden_layers"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers"),
        ({"hidden_size": 10**30}, "hidden_size"),
        ({"layer_types": ["full_attention"] * 10**6}, "layer_types"),
        ({"vocab_size": 10**100}, "vocab_size"),
    ):
        given_config = config("llama-3.1-8b", **changes)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        with pytest.raises(ConfigError) as caught:
            read_config(given_config, "Mine")
        assert caught.value.key == key
        assert tracemalloc.get_traced_memory()[1] - before < 2_000_000
    tracemalloc.stop()


def test_the_deepest_model_that_is_read_is_read_soon() -> None:
    assert survives(config("llama-3.1-8b", num_hidden_layers=2000)) is not None
    names = [f"model.layers.{i}.self_attn.q_proj" for i in range(2000)]
    settings_block = {"quant_method": "fp8", "modules_to_not_convert": names}
    assert survives(config("llama-3.1-8b", num_hidden_layers=2000, quantization_config=settings_block)) is not None


def test_a_file_nested_without_end_is_read_one_level_deep() -> None:
    reading = survives({"model_type": "llava", "text_config": deep(500)})
    assert reading is not None
    assert reading.unread == ("text_config.text_config",)
    assert any("own sizes" in notice for notice in reading.notices)


def test_what_is_read_is_not_changed() -> None:
    for name in ("hunyuan-a13b", "mistral-large-3", "qwen3.5-0.8b", "kimi-k3"):
        given_config = config(name)
        before = copy.deepcopy(given_config)
        read_config(given_config, name)
        assert given_config == before


@pytest.mark.parametrize(
    "pattern",
    ["re:" + "(a*)*" * 50, "re:((((((((((((a))))))))))))", "re:(a|a)*b", "re:" + ".*" * 190, "re:(?=x)", "re:a{2,9}",
     "re:[a", "re:(", "re:)", "re:*", "re:\\1", "*" * 300, "*a" * 150, "?" * 400, "re:" + "a" * 500, "layers.999999.x",
     "model.layers.0" + ".a" * 300],
)  # fmt: skip
def test_patterns_cannot_be_made_to_run_long(pattern: str) -> None:
    for name in ("llama-3.1-8b", "qwen3.5-27b"):
        survives(
            config(name) | {"quantization_config": {"quant_method": "fp8", "modules_to_not_convert": [pattern] * 60}}
        )


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(0, 300), st.floats(), st.text(max_size=12),
    st.sampled_from(["full_attention", "sliding_attention", "linear_attention", "mamba", "dense", "sparse", "fp8"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
ALL = sorted(entries())
KEYS = sorted({key for name in ALL for key in entries()[name]["keys"]})


@settings(max_examples=900, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_mutated_configurations_are_read_or_refused(data: st.DataObject) -> None:
    mutated = copy.deepcopy(config(data.draw(st.sampled_from(ALL))))
    for _ in range(data.draw(st.integers(1, 4))):
        blocks = [mutated, *(value for value in mutated.values() if isinstance(value, dict) and value)]
        block = data.draw(st.sampled_from(blocks))
        key = data.draw(st.sampled_from([*block, *KEYS]) if block else st.sampled_from(KEYS))
        match data.draw(st.integers(0, 3)):
            case 0:
                block.pop(key, None)
            case 1:
                block[key] = data.draw(VALUES)
            case 2:  # the value of another key, of this model or of another
                other = entries()[data.draw(st.sampled_from(ALL))]["keys"]
                block[key] = copy.deepcopy(data.draw(st.sampled_from(list(other.values()))))
            case _:  # the same key again in another nesting
                mutated[key] = copy.deepcopy(block.get(key))
    survives(mutated)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(ALL), st.dictionaries(st.text(max_size=10) | st.sampled_from(KEYS), VALUES, max_size=5))
def test_any_keys_may_be_added(name: str, more: dict[str, Any]) -> None:
    survives(config(name) | more)
