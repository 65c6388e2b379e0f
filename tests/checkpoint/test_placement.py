"""Which layers have experts: every way in which configurations say so."""

from typing import Any

import pytest

from app.calc.model.layers.experts import Experts
from app.checkpoint.frame import (
    Frame,
    Placement,
    after_dense,
    by_enumeration,
    by_interleaving,
    by_period,
    by_sparse_step,
    every_layer,
    from_start_index,
)
from app.checkpoint.keys import Keys, Ledger
from app.checkpoint.reading import read_config
from tests.checkpoint.published import config


@pytest.mark.parametrize(
    ("rule", "keys", "expected"),
    [
        (every_layer, {}, "EEEEEE"),
        (after_dense, {"first_k_dense_replace": 2}, "--EEEE"),
        (after_dense, {"first_k_dense_replace": 1, "moe_layer_freq": 2}, "--E-E-"),
        (after_dense, {"moe_layer_freq": [0, 0, 1, 1, 1, 0]}, "--EEE-"),
        (after_dense, {"mlp_layer_types": ["dense"] * 2 + ["sparse"] * 4}, "--EEEE"),
        (by_sparse_step, {"decoder_sparse_step": 2}, "-E-E-E"),
        (by_sparse_step, {"decoder_sparse_step": 1, "mlp_only_layers": [0, 5]}, "-EEEE-"),
        (by_interleaving, {"interleave_moe_layer_step": 3}, "--E--E"),
        (by_interleaving, {"moe_layers": [1, 2]}, "-EE---"),
        (from_start_index, {"moe_layer_start_index": 2, "moe_layer_end_index": 4}, "--EEE-"),
        (from_start_index, {"moe_layer_interval": 2, "moe_layer_end_index": -1}, "-E-E-E"),
        (by_period, {"expert_layer_period": 3, "expert_layer_offset": 1}, "-E--E-"),
        (by_enumeration, {"moe_layers_enum": "1,3, 4"}, "-E-EE-"),
        (by_enumeration, {"first_k_dense_replace": 3}, "---EEE"),
    ],
)
def test_a_rule_places_experts(rule: Placement, keys: dict[str, Any], expected: str) -> None:
    frame = Frame(8, 6, 10, None, tied_embeddings=False)
    places = rule(Keys(keys, "", Ledger()), frame)
    assert "".join("E" if place else "-" for place in places) == expected


def test_shared_experts_are_one_block_and_a_gate_belongs_to_qwen() -> None:
    for name, size, gate in (
        ("deepseek-v2-lite", 2816, False),
        ("qwen3-next-80b-a3b", 512, True),
        ("mixtral-8x7b", None, False),
    ):
        blocks = [b for g in read_config(config(name), name).architecture.layers for b in g.feed_forwards]
        experts = next(block for block in blocks if isinstance(block, Experts))
        assert (experts.shared_size, experts.shared_gate) == (size, gate)
