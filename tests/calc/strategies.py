"""Random models, cards and workloads, and the settings of every property test."""

from types import MappingProxyType
from typing import cast

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from app.calc.accelerator import Accelerator, MemoryBasis
from app.calc.broadcast import Quantity
from app.calc.deployment import Deployment, Engine, Precision, Workload
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.memory.engines.parts import Given
from app.calc.model.architecture import Architecture, LayerGroup
from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.grouped_attention import GroupedAttention, QkNorm
from tests.factories import precision, shipped_catalog

repeatable = settings(deadline=None, derandomize=True, max_examples=30)


def array(values: list[float]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


def at(quantity: Quantity, shape: tuple[int, ...], index: tuple[int, ...]) -> float:
    """One element of what a function gave, whatever axes its result left out."""
    return float(np.broadcast_to(cast("NDArray[np.float64]", quantity), shape)[index])


def attentions(windows: st.SearchStrategy[int | None] | None = None) -> st.SearchStrategy[GroupedAttention]:
    heads = st.sampled_from([(1, 1), (4, 1), (6, 3), (8, 8), (32, 8), (71, 1)])
    return st.builds(
        lambda heads, head_dim, window, qkv_bias, output_bias, qk_norm: GroupedAttention(
            heads[0], heads[1], head_dim, None, window, None, qkv_bias, output_bias, qk_norm
        ),
        heads,
        st.sampled_from([1, 16, 64, 96, 128, 256]),
        windows if windows is not None else st.none() | st.integers(1, 5000),
        st.booleans(),
        st.booleans(),
        st.sampled_from(QkNorm),
    )


def _alone(block: DenseFeedForward) -> tuple[DenseFeedForward, ...]:
    return (block,)


def architectures(windows: st.SearchStrategy[int | None] | None = None) -> st.SearchStrategy[Architecture]:
    group = st.builds(
        LayerGroup,
        count=st.integers(1, 90),
        mixer=attentions(windows),
        feed_forwards=st.builds(DenseFeedForward, st.integers(1, 60_000), st.booleans(), st.booleans()).map(_alone),
        norms=st.integers(1, 4),
    )
    return st.builds(
        Architecture,
        name=st.just("Random"),
        hidden_size=st.integers(1, 20_000),
        vocab_size=st.integers(1, 300_000),
        layers=st.lists(group, min_size=1, max_size=3).map(tuple),
        tied_embeddings=st.booleans(),
        max_position=st.none() | st.integers(1, 10**6),
        learned_positions=st.integers(0, 5000),
        norm_bias=st.booleans(),
        head_bias=st.booleans(),
        vision_params=st.sampled_from([0, 10**9]),
    )


def catalog_architectures() -> st.SearchStrategy[Architecture]:
    return st.sampled_from(list(shipped_catalog().architectures.values()))


def accelerators() -> st.SearchStrategy[Accelerator]:
    """Cards with a rate for every type, from a toy to far beyond what is sold."""
    rates = st.fixed_dictionaries(dict.fromkeys(Dtype, st.floats(1e9, 1e17)))
    return st.builds(
        Accelerator,
        id=st.just("random"),
        name=st.just("Random card"),
        memory_marketed_bytes=st.floats(1e9, 1e12),
        memory_reported_bytes=st.none() | st.integers(10**9, 10**12),
        bandwidth_bytes_per_s=st.floats(1e9, 1e15),
        peak_flops_per_s=rates.map(MappingProxyType),
        tdp_w=st.none() | st.floats(1, 5000),
        price_usd_per_hour=st.none() | st.floats(0, 100),
    )


def precisions() -> st.SearchStrategy[Precision]:
    caches = [dtype for dtype in Dtype if dtype is not Dtype.TF32]
    return st.builds(precision, st.sampled_from(WeightFormat), st.sampled_from(caches), st.sampled_from(Dtype))


def workloads(concurrency: st.SearchStrategy[int | None] | None = None) -> st.SearchStrategy[Workload]:
    return st.builds(
        Workload,
        prompt_tokens=st.integers(1, 200_000),
        output_tokens=st.integers(1, 50_000),
        concurrency=concurrency if concurrency is not None else st.none() | st.integers(1, 5000),
        prefix_hit_rate=st.sampled_from([0.0, 0.0, 0.3, 0.999, 1.0]),
    )


def engines(pools: st.SearchStrategy[float | None] | None = None) -> st.SearchStrategy[Engine]:
    return st.builds(
        Engine,
        id=st.just("ideal"),
        memory_utilization=st.floats(0.01, 1),
        max_num_seqs=st.none() | st.integers(1, 1000),
        given=st.builds(Given, kv_pool=pools if pools is not None else st.none() | st.floats(1, 1e12)),
    )


def deployments(
    *,
    engine: st.SearchStrategy[Engine] | None = None,
    workload: st.SearchStrategy[Workload] | None = None,
    architecture: st.SearchStrategy[Architecture] | None = None,
) -> st.SearchStrategy[Deployment]:
    return st.builds(
        Deployment,
        architecture=architecture if architecture is not None else architectures() | catalog_architectures(),
        accelerator=accelerators(),
        precision=precisions(),
        engine=engine if engine is not None else engines(),
        workload=workload if workload is not None else workloads(),
        memory_basis=st.sampled_from(MemoryBasis),
    )
