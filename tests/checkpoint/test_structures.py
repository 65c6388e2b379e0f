"""Experts that a file switches off, and keys that announce what no family here has."""

from typing import Any

import pytest

from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.parameters import count_parameters
from app.checkpoint.reading import ConfigError, UnknownFamilyError, read_config
from tests.checkpoint.published import config

HUNYUAN: dict[str, Any] = {
    "model_type": "hunyuan_v1_dense",
    "attention_bias": False,
    "cla_share_factor": 2,
    "head_dim": 128,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "num_attention_heads": 32,
    "num_experts": 1,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": True,
    "use_cla": False,
    "use_qk_norm": True,
    "vocab_size": 128167,
}
GUARD: dict[str, Any] = {
    "model_type": "llama4_text",
    "attention_chunk_size": 8192,
    "head_dim": 128,
    "hidden_size": 5120,
    "interleave_moe_layer_step": 0,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16384,
    "max_position_embeddings": 131072,
    "moe_layers": [],
    "num_attention_heads": 40,
    "num_experts_per_tok": 0,
    "num_hidden_layers": 48,
    "num_key_value_heads": 8,
    "num_local_experts": 0,
    "vocab_size": 202048,
}


@pytest.mark.parametrize("model_type", ["hunyuan_v1_dense", "hunyuan", "hunyuan_v1_moe"])
@pytest.mark.parametrize("more", [{}, {"num_experts_per_tok": 1, "moe_topk": 1, "moe_intermediate_size": 14336}])
def test_one_expert_of_hunyuan_is_a_dense_block(model_type: str, more: dict[str, Any]) -> None:
    reading = read_config(HUNYUAN | more | {"model_type": model_type}, "Hunyuan")
    (group,) = reading.architecture.layers
    assert group.feed_forwards == (DenseFeedForward(14336),)
    assert count_parameters(reading.architecture).total == 7_504_568_320


def test_more_experts_than_one_are_not_dense() -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(HUNYUAN | {"num_experts": 16}, "Hunyuan")
    assert caught.value.key == "num_experts"


@pytest.mark.parametrize("block", [None, "text_config"])
@pytest.mark.parametrize("experts", [0, 16])
def test_llama_4_without_a_layer_of_experts_is_dense(block: str | None, experts: int) -> None:
    inner = GUARD | {"num_local_experts": experts}
    reading = read_config({"model_type": "llama4", block: inner} if block else inner, "Llama Guard 4")
    assert {group.feed_forwards for group in reading.architecture.layers} == {(DenseFeedForward(16384),)}
    assert reading.unread == ()


def test_no_experts_in_layers_of_experts_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(GUARD | {"moe_layers": [1], "interleave_moe_layer_step": 1}, "Mine")
    assert caught.value.key == "num_local_experts"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("mixtral-8x7b", {"model_type": "arctic", "use_residual": True, "parallel_attn_mlp_res": True}),
        ("mixtral-8x7b", {"model_type": "arctic", "parallel_attn_mlp_res": True}),
        ("llama-3.1-8b", {"model_type": "solar", "bskcn_1": [12, 20, 32, 44], "bskcn_tv": [0.9, 0.8]}),
        ("llama-3.1-8b", {"model_type": "solar", "bskcn_7": [12]}),
    ],
)
def test_a_structure_of_another_family_is_never_offered_nor_read(name: str, changes: dict[str, Any]) -> None:
    given = config(name, **changes)
    with pytest.raises(UnknownFamilyError) as caught:
        read_config(given, "Mine")
    assert caught.value.suggestions == ()
    with pytest.raises(ConfigError) as refused:
        read_config(given, "Mine", read_as="llama" if name.startswith("llama") else "mixtral")
    assert refused.value.key in changes
    assert "announces a structure" in refused.value.message
