"""The named parts of each layer are all of its matrices, and lists name the layers they mean."""

from dataclasses import replace

import pytest

from app.calc.dtypes import WeightFormat
from app.calc.model.layers.parts import WeightGroup
from app.calc.model.parameters import layer_weights
from app.checkpoint.quantization.naming import Rule, sort_rules
from app.checkpoint.quantization.parts import Part, parts_of
from app.checkpoint.reading import Reading, read_config
from tests.checkpoint.published import config, entries

NARROW = {"quant_method": "fp8", "weight_block_size": [128, 128]}


@pytest.mark.parametrize("name", sorted(entries()))
def test_the_parts_of_a_layer_are_all_its_matrices(name: str) -> None:
    reading = read_config(config(name), name)
    groups = (*reading.architecture.layers, *(reading.mtp.layers if reading.mtp else ()))
    for group in groups:
        one = replace(group, count=1)
        matrices: dict[WeightGroup, int] = {}
        for weights in layer_weights(one, reading.architecture.hidden_size):
            if weights.is_matrix and weights.group is not WeightGroup.SIDE_PATHS:
                matrices[weights.group] = matrices.get(weights.group, 0) + weights.stored
        parts: dict[WeightGroup, int] = {}
        for part in parts_of(one, reading.architecture.hidden_size):
            parts[part.group] = parts.get(part.group, 0) + part.params
        assert parts == matrices


def wide_layers(*patterns: str, name: str = "llama-3.1-8b") -> dict[WeightGroup, list[int]]:
    """The layers in which each group is all wide, once the patterns are ignored."""
    settings = NARROW | {"modules_to_not_convert": list(patterns)}
    reading: Reading = read_config(config(name, quantization_config=settings), name)
    architecture, narrow = reading.architecture, dict(reading.plan.narrow)
    return {
        group: [
            layer
            for layer, number in enumerate(architecture.order)
            if group in architecture.layers[number].unquantized or group not in narrow
        ]
        for group in (WeightGroup.ATTENTION, WeightGroup.FEED_FORWARD, WeightGroup.ROUTED_EXPERTS)
    }


@pytest.mark.parametrize(
    ("pattern", "attention", "block"),
    [
        ("model.layers.3.self_attn", [3], []),
        ("model.layers.3.self_attn*", [3], []),
        ("model.language_model.layers.3.self_attn*", [3], []),
        ("model.layers.3.mlp", [], [3]),
        ("layers.3", [3], [3]),
        ("model.layers.3.*", [3], [3]),
        ("model.layers.3*", [3, 30, 31], [3, 30, 31]),
        ("model.layers.*.self_attn", list(range(32)), []),
        ("self_attn", list(range(32)), []),
        ("re:.*layers\\.(0|31)\\.mlp.*", [], [0, 31]),
        ("re:model.layers.[0-2].self_attn", [0, 1, 2], []),
        ("*.mlp.*", [], list(range(32))),
        ("model.layers.3.input_layernorm", [], []),
        ("gate", [], []),  # a router, and no part of gate_proj
        ("lm_head", [], []),
        ("vision_tower.layers.3.self_attn", [], []),
        ("mtp.layers.0.mlp", [], []),
        ("model.layers.99.mlp", [], []),
    ],
)
def test_a_pattern_means_the_layers_and_groups_it_says(pattern: str, attention: list[int], block: list[int]) -> None:
    found = wide_layers(pattern)
    assert found[WeightGroup.ATTENTION] == attention
    assert found[WeightGroup.FEED_FORWARD] == block


def test_all_three_matrices_of_a_block_named_one_by_one_are_the_block() -> None:
    names = [f"model.layers.5.mlp.{part}_proj" for part in ("gate", "up", "down")]
    assert wide_layers(*names)[WeightGroup.FEED_FORWARD] == [5]
    assert wide_layers(*names[:2])[WeightGroup.FEED_FORWARD] == []


def test_experts_are_no_part_of_the_dense_block_around_them() -> None:
    found = wide_layers("re:.*mlp\\.(gate|up|down)_proj.*", name="kimi-k2")
    assert found[WeightGroup.FEED_FORWARD] == list(range(61))
    assert found[WeightGroup.ROUTED_EXPERTS] == []


def test_predicting_layers_are_named_after_the_last_or_by_a_box_of_their_own() -> None:
    for pattern in ("model.layers.61*", "model.layers.61.mlp", "mtp.*", "mtp.layers.0.mlp*"):
        settings = NARROW | {"modules_to_not_convert": [pattern]}
        reading = read_config(config("deepseek-v3", quantization_config=settings), "V3")
        assert reading.mtp is not None
        (layer,) = reading.mtp.layers
        assert WeightGroup.ROUTED_EXPERTS in layer.unquantized
        assert not any(group.unquantized for group in reading.architecture.layers)


def test_later_rules_win_and_ignored_ones_over_all() -> None:
    part = Part(("self_attn.q_proj",), WeightGroup.ATTENTION, 1)
    fp8, int4 = WeightFormat.FP8.layout, WeightFormat.INT4.layout
    rules = sort_rules(
        [Rule("self_attn", fp8, "k"), Rule("layers.1.self_attn", int4, "k"), Rule("layers.2", None, "k")]
    )
    parts = (part,)
    assert rules.layouts(0, parts, (None,)) == (fp8,)
    assert rules.layouts(1, parts, (None,)) == (int4,)
    assert rules.layouts(2, parts, (fp8,)) == (None,)
