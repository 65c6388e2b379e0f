"""Long lists cost what a look-up costs, whatever they hold; what they name in vain is told or refused."""

from contextlib import suppress
from typing import Any

import pytest

from app.calc.model.layers.parts import WeightGroup
from app.checkpoint import limits
from app.checkpoint.quantization import naming
from app.checkpoint.quantization.naming import Rule, sort_rules
from app.checkpoint.quantization.patterns import MOST_READ, MOST_SECONDS, Effort, index_of
from app.checkpoint.reading import ConfigError, Reading, read_config
from tests.checkpoint.published import config

KEY = "quantization_config.modules_to_not_convert"


def ignoring(patterns: list[str], layers: int = 32, name: str = "llama-3.1-8b") -> Reading:
    settings = {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": patterns}
    changes = {"num_hidden_layers": layers} if name == "llama-3.1-8b" else {}
    return read_config(config(name, quantization_config=settings, **changes), "Mine")


def refusal(patterns: list[str], layers: int = 32) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        ignoring(patterns, layers)
    assert caught.value.key == KEY
    return caught.value


@pytest.fixture
def efforts(monkeypatch: pytest.MonkeyPatch) -> list[Effort]:
    """Every count of letters that a reading makes."""
    made: list[Effort] = []
    original = Effort.spend

    def spend(self: Effort, letters: int) -> None:
        if not any(self is one for one in made):
            made.append(self)
        original(self, letters)

    monkeypatch.setattr(Effort, "spend", spend)
    return made


HOSTILE = {
    "globs": [f"*a{i}*b" for i in range(15_000)],
    "globs of layers": [f"model.layers.{i % 2_000}.*q7_*_*o*j{i}" for i in range(6_000)],
    "globs with numbers": [f"model.layers*{i}*.mlp.*" for i in range(250)],
    "question marks": [f"*l?y?r?.{'?' * (i % 4 + 1)}.m*{i}" for i in range(250)],
    "long globs": [f"*{i}" + "*a" * 195 for i in range(250)],
    "expressions": [f"re:.*layers\\.{i}\\d*\\.mlp.*" for i in range(64)],
    "long expressions": [f"re:.*{i}?a" + "." * 350 for i in range(64)],
    "expressions that look alike": [f"re:{i}?" + "(a|b|.)*[a-z_]*" * 25 for i in range(64)],
    "names": [f"name{i}" for i in range(15_000)],
    "names of layers": [f"model.layers.{i % 2_000}.mlp.x{i}" for i in range(15_000)],
    "starts of numbers": [f"model.layers.{i}*" for i in range(15_000)],
    "predicting layers": [f"mtp.layers.{i % 2_000}.mlp.x{i}" for i in range(15_000)],
}


@pytest.mark.parametrize("layers", [32, 2_000])
@pytest.mark.parametrize("name", HOSTILE)
def test_no_list_costs_more_than_is_allowed(name: str, layers: int, efforts: list[Effort]) -> None:
    with suppress(ConfigError):
        ignoring(HOSTILE[name], layers)
    (effort,) = efforts or [Effort()]
    assert effort.spent <= MOST_READ + naming.NAME * limits.NAMES
    assert effort.seconds < MOST_SECONDS + 0.5


def test_what_is_asked_of_names_does_not_grow_with_the_layers(efforts: list[Effort]) -> None:
    names = [f"model.layers.{i % 2_000}.self_attn.q_proj" for i in range(10_000)]
    for layers in (32, 2_000):
        ignoring(names, layers)
    assert [effort.spent for effort in efforts] == [naming.NAME * 2_000] * 2  # each name once


def test_a_glob_is_walked_once_for_all_layers(efforts: list[Effort]) -> None:
    patterns = ["model.layers.*.self_attn", "*.mlp.down*"]
    assert ignoring(patterns, 32).architecture.n_layers == 32
    assert ignoring(patterns, 2_000).architecture.n_layers == 2_000
    few, many = (effort.spent for effort in efforts)
    assert few == many < 200_000
    assert ignoring([f"model.layers.{i}.self_attn*" for i in range(2_000)], 2_000).architecture.n_layers == 2_000
    assert efforts[-1].spent < 3_000_000


def test_too_many_of_anything_are_refused() -> None:
    assert "256 different patterns" in refusal([f"*a{i}" for i in range(257)]).message
    assert "64 expressions" in refusal([f"re:a{i}" for i in range(65)]).message
    assert "15,001 entries" in refusal(["a"] * 15_001).message
    assert "letters" in refusal([f"{i:0900}" for i in range(3_000)]).message
    assert "too long" in refusal(HOSTILE["globs with numbers"], 2_000).message


def test_globs_that_differ_by_the_layer_alone_are_one() -> None:
    reading = ignoring([f"model.layers.{i}.self_attn*" for i in range(2_000)], 2_000)
    assert WeightGroup.ATTENTION not in dict(reading.plan.narrow)


@pytest.mark.parametrize(
    ("pattern", "layers"),
    [
        ("model.layers.1?.mlp*", range(10, 20)),
        ("*layers.?.mlp*", range(10)),
        ("model.layers.1*.mlp*", (1, *range(10, 20))),
        ("re:model\\.layers\\.\\d\\.mlp", range(10)),
        ("re:.*layers\\.(30|31)\\..*", (30, 31)),
    ],
)
def test_a_pattern_may_tell_numbers_apart(pattern: str, layers: Any) -> None:
    reading = ignoring([pattern])
    architecture = reading.architecture
    found = [
        layer
        for layer, number in enumerate(architecture.order)
        if WeightGroup.FEED_FORWARD in architecture.layers[number].unquantized
    ]
    assert found == list(layers)


def test_the_index_finds_by_boxes_and_by_steps_that_follow_each_other() -> None:
    index = index_of((("mlp.experts.0.up", "mlp.up"), ("mlp.gate",)))
    assert index.boxes["mlp"] == index.boxes[""] == (0, 1)
    assert index.boxes["mlp.experts"] == (0,)
    assert "experts" not in index.boxes
    assert index.paths["experts.0"] == (0,)
    assert "mlp.0" not in index.paths
    assert index.names == ("mlp.experts.0.up", "mlp.up", "mlp.gate")
    assert index.owners == ((0,), (0,), (1,))


@pytest.mark.parametrize("name", ["llama-3.1-8b", "deepseek-v3", "kimi-k2", "qwen3.5-27b", "deepseek-v4-flash"])
@pytest.mark.parametrize(
    "pattern", ["re:.*layers\\.{}\\.mlp.*", "re:.*layers\\.{}\\.(mlp|ffn)\\.(gate|up|down)_proj$", "*layers.{}.mlp.*"]
)
def test_a_pattern_for_each_layer_is_read(name: str, pattern: str) -> None:
    layers = ignoring([], name=name).architecture.n_layers
    patterns = [pattern.format(layer) for layer in range(min(layers, 64))]
    assert ignoring(patterns, name=name).architecture.n_layers == layers


def test_a_later_rule_wins_whatever_the_dictionary() -> None:
    names = [Rule("layers.1", None, "k"), Rule("layers.1.mlp", None, "k"), Rule("layers.1", None, "k")]
    assert list(sort_rules(names).tails(1).items()) == [("mlp", 1), ("", 2)]


@pytest.mark.parametrize(
    ("patterns", "told"),
    [
        (["model.layers.99.mlp"], "model.layers.99.mlp"),
        (["lm_head", "foo", "model.layers.3.self_attn"], "foo"),
        (["foo", "bar", "*.baz", "qux", "re:.*quux"], "foo, bar, *.baz and 2 more"),
        (["model.layers.3.mlp.nothing"], "model.layers.3.mlp.nothing"),
        (["model.layers.32*"], "model.layers.32*"),
    ],
)
def test_what_an_ignore_list_names_in_vain_is_told(patterns: list[str], told: str) -> None:
    assert f"The list of what is not quantized names what this model has not: {told}." in ignoring(patterns).notices


def test_what_real_lists_name_beside_matrices_is_not_told() -> None:
    names = [
        "lm_head", "model.layers.0.input_layernorm", "model.visual.blocks.9.attn.qkv", "vision_tower*", "mtp.fc",
        "mtp*", "model.layers.0.mlp.e_score_correction_bias", "thinker.audio_tower.layers.3.self_attn", "model.norm",
    ]  # fmt: skip
    reading = ignoring(names)
    assert not reading.notices
    assert not any(group.unquantized for group in reading.architecture.layers)
