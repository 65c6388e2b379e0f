"""Decoders with latent attention: DeepSeek, Kimi, GLM-5, LongCat, MiniCPM 3."""

from collections.abc import Sequence
from dataclasses import replace

from app.calc.architecture import LayerGroup, MultiTokenPrediction
from app.calc.layers.dense import DenseFeedForward
from app.calc.layers.sparse_latent_attention import SparseLatentAttention
from app.catalog.importing import limits, spellings
from app.catalog.importing.dense_families import attention
from app.catalog.importing.family import Family
from app.catalog.importing.feed_forward import count_shared, dense, experts, read_experts
from app.catalog.importing.frame import read_frame
from app.catalog.importing.keys import Keys
from app.catalog.importing.latent import (
    latent,
    latent_from_hidden,
    latent_or_grouped,
    read_latent,
    sparse_latent,
)
from app.catalog.importing.mtp import embedding_and_head, joint_params, predicting, read_count
from app.catalog.importing.placement import after_dense
from app.catalog.importing.recipe import Body, Recipe, stacked

V3_BLOCKS = experts(shared=count_shared, placed=after_dense, correction_bias=True)


def layer_with_index(each: Sequence[LayerGroup]) -> LayerGroup:
    """A predicting layer makes an index of its own, like the last layer that makes one."""
    owners = [g for g in each if isinstance(g.mixer, SparseLatentAttention) and g.mixer.indexer]
    return replace(owners[-1], feed_forwards=each[-1].feed_forwards)


def longcat(keys: Keys) -> Body:
    """LongCat: each layer has two attentions and two dense blocks, and one set of experts beside them.

    It is read as two layers, the first with the experts, so that both caches are counted.
    """
    frame = read_frame(keys, tied=False)
    mixer = read_latent(keys)
    inner = DenseFeedForward(keys.whole("intermediate_size", spellings.WIDTH, limits.WIDTH))
    identity = keys.maybe_whole("identity_experts", ("zero_expert_num",), limits.EXPERTS, least=0)
    keys.word("identity_kind", ("zero_expert_type",), ("identity",))
    routed = read_experts(keys, shared=lambda *_: None, correction_bias=True, identity=identity or None)
    keys.passed_over("attention_method", "mla_scale_q_lora", "mla_scale_kv_lora", "router_bias")
    halves = [LayerGroup(1, mixer, (routed, inner)), LayerGroup(1, mixer, (inner,))] * frame.n_layers
    keys.ledger.derive("attention_layers", 2 * frame.n_layers, "two attentions in each layer")
    keys.ledger.notice("Each layer is counted as two: it has two attentions and two dense blocks.")
    layers, order = stacked(halves)
    count = read_count(keys, ("num_nextn_predict_layers", "mtp_num_layers"), 1, "the published files carry one")
    mtp = None
    if count:
        copies = frame.vocab_size * frame.hidden_size
        keys.ledger.assume("mtp_duplicates", copies, "the published files repeat the embedding")
        block = replace(halves[1], count=count)
        mtp = MultiTokenPrediction((block,), count * joint_params(frame.hidden_size), copies)
    return Body(frame, layers, order, mtp=mtp)


FAMILIES = (
    Family(
        "DeepSeek-V2",
        ("deepseek_v2",),
        Recipe(latent_or_grouped(attention()), experts(shared=count_shared, placed=after_dense)),
    ),
    Family(
        "DeepSeek-V3 and R1",
        ("deepseek_v3",),
        Recipe(latent, V3_BLOCKS, mtp=predicting(duplicates=embedding_and_head)),
    ),
    Family(
        "DeepSeek-V3.2",
        ("deepseek_v32",),
        Recipe(sparse_latent, V3_BLOCKS, mtp=predicting(pick=layer_with_index, duplicates=embedding_and_head)),
    ),
    Family("Kimi K2", ("kimi_k2",), Recipe(latent, V3_BLOCKS, mtp=predicting(duplicates=embedding_and_head))),
    Family("GLM-5", ("glm_moe_dsa",), Recipe(sparse_latent, V3_BLOCKS, mtp=predicting(pick=layer_with_index))),
    Family("GLM-4.7 Flash", ("glm4_moe_lite",), Recipe(latent, V3_BLOCKS, mtp=predicting())),
    Family(
        "Mistral Small 4 and Large 3",
        ("mistral4",),
        Recipe(latent, experts(shared=count_shared, placed=after_dense)),
    ),
    Family("LongCat-Flash", ("longcat_flash",), longcat),
    Family("Youtu", ("youtu",), Recipe(latent, dense(), tied=True)),
    Family("MiniCPM 3", ("minicpm3",), Recipe(latent_from_hidden, dense(), tied=True)),
)
