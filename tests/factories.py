"""Builders of what the tests start from: the reference case, scenario documents, answers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any

from app.calc.accelerator import Accelerator
from app.calc.deployment import Deployment, Engine, Precision, Workload
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.model.architecture import Architecture, LayerGroup
from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.grouped_attention import GroupedAttention
from app.calc.model.parameters import convention
from app.catalog.catalog import Catalog, load_catalog
from app.features.validation.compared import Compared
from app.features.validation.errors import ValidationSheet
from app.scenario.answer import Answer, answer
from app.scenario.scenario import Scenario

MIB = 2**20


@cache
def shipped_catalog() -> Catalog:
    """The catalog of the product, read once for all tests."""
    return load_catalog()


@cache
def compared_rows() -> Sequence[Compared]:
    """Every compared measurement of that catalog, predicted once for all tests."""
    return ValidationSheet(shipped_catalog()).rows


def llama_3_1_8b() -> Architecture:
    """The model of the reference case, typed in and not read from the catalog."""
    return Architecture(
        name="Llama 3.1 8B",
        hidden_size=4096,
        vocab_size=128_256,
        layers=(LayerGroup(32, GroupedAttention(32, 8, 128), (DenseFeedForward(14_336),)),),
        max_position=131_072,
    )


def interleaved(window: int = 512, *, windowed_layers: int = 5, full_layers: int = 1) -> Architecture:
    """A small model of windowed and full layers; no full ones makes every layer windowed."""
    attention, block = GroupedAttention(n_heads=8, n_kv_heads=4, head_dim=64), (DenseFeedForward(1024),)
    groups = [LayerGroup(windowed_layers, replace(attention, window=window), block)]
    if full_layers:
        groups.append(LayerGroup(full_layers, attention, block))
    return Architecture("Interleaved", 512, 1000, tuple(groups), max_position=8192)


def h100_sxm() -> Accelerator:
    """The card of the reference case, with the round 989e12 FLOP/s of the story."""
    rates = {
        Dtype.FP32: 66.9e12,
        Dtype.TF32: 494.7e12,
        Dtype.FP16: 989e12,
        Dtype.BF16: 989e12,
        Dtype.FP8: 1979e12,
        Dtype.INT8: 1979e12,
    }
    return Accelerator(
        id="h100",
        name="H100 SXM",
        memory_marketed_bytes=80e9,
        memory_reported_bytes=81_559 * MIB,
        bandwidth_bytes_per_s=3.35e12,
        peak_flops_per_s=MappingProxyType(rates),
        tdp_w=700,
        price_usd_per_hour=2.95,
    )


def h200_sxm() -> Accelerator:
    """The same arithmetic beside more and faster memory."""
    return replace(
        h100_sxm(),
        id="h200",
        name="H200 SXM",
        memory_marketed_bytes=141e9,
        memory_reported_bytes=143_771 * MIB,
        bandwidth_bytes_per_s=4.8e12,
    )


def precision(
    weights: WeightFormat = WeightFormat.BF16,
    kv_cache: Dtype = Dtype.BF16,
    compute: Dtype = Dtype.BF16,
    architecture: Architecture | None = None,
) -> Precision:
    """Weights as people name them, 16 bits everywhere unless said otherwise."""
    return Precision(convention(weights, architecture or llama_3_1_8b()), kv_cache, compute)


BF16 = precision()


def workload(
    prompt_tokens: int = 1000, output_tokens: int = 500, concurrency: int | None = 64, **others: Any
) -> Workload:
    """1,000 tokens in, 500 out, 64 at a time, unless said otherwise."""
    return Workload(prompt_tokens, output_tokens, concurrency, **others)


def engine(memory_utilization: float = 0.9, **others: Any) -> Engine:
    """An ideal engine that may use nine tenths of the card: nothing beside weights and cache, so hand-work is exact."""
    return Engine("ideal", memory_utilization, **others)


def deployment(**changes: Any) -> Deployment:
    """Llama-3.1-8B in bf16 on an H100 SXM; `changes` are fields of the Deployment."""
    reference = Deployment(
        architecture=llama_3_1_8b(),
        accelerator=h100_sxm(),
        precision=BF16,
        engine=engine(),
        workload=workload(),
    )
    return replace(reference, **changes)


def scenario_document(
    model: str | Mapping[str, Any] = "llama-3.1-8b",
    hardware: str | Mapping[str, Any] = "h100-sxm-80gb",
    **sections: Any,
) -> dict[str, Any]:
    """The least that is posted for the reference case, and `sections` beside it; an id stands for its section."""
    return {"model": _named(model), "hardware": _named(hardware), **sections}


def _named(part: str | Mapping[str, Any]) -> dict[str, Any]:
    return {"id": part} if isinstance(part, str) else dict(part)


def scenario(
    model: str | Mapping[str, Any] = "llama-3.1-8b",
    hardware: str | Mapping[str, Any] = "h100-sxm-80gb",
    **sections: Any,
) -> Scenario:
    """The validated form of `scenario_document`."""
    return Scenario.model_validate(scenario_document(model, hardware, **sections))


def answer_to(
    model: str | Mapping[str, Any] = "llama-3.1-8b",
    hardware: str | Mapping[str, Any] = "h100-sxm-80gb",
    **sections: Any,
) -> Answer:
    """The answer to `scenario`, from the shipped catalog."""
    return answer(scenario(model, hardware, **sections), shipped_catalog())


def custom_card(**changes: Any) -> dict[str, Any]:
    """A custom accelerator as it is posted; a change of None takes the field away."""
    card: dict[str, Any] = {"memory_gb": 80, "bandwidth_gb_per_s": 3350, "dense_tflops": {"bf16": 989}}
    return merge_patch(card, changes)


def merge_patch(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """RFC 7396, written out once more: null takes a key away, objects merge, everything else replaces."""
    merged = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            inner = merged.get(key)
            merged[key] = merge_patch(inner if isinstance(inner, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged
