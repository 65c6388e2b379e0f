"""What is evaluated: a model on an accelerator, in a precision, under an engine and a workload. Facts only, no ids."""

from dataclasses import dataclass
from functools import lru_cache

from app.calc.accelerator import Accelerator, MemoryBasis
from app.calc.architecture import Architecture
from app.calc.dtypes import Dtype, WeightLayout
from app.calc.layers.parts import WeightGroup
from app.calc.weight_plan import WeightPlan

MOST_CONCURRENT = 1_000_000
"""Largest concurrency a scenario may ask for."""


@dataclass(frozen=True, slots=True)
class Precision:
    """Formats of the stored weights, of the cache, and of the arithmetic in the layers' matrices."""

    weights: WeightPlan
    kv_cache: Dtype
    compute: Dtype


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine's share of a card. `kv_pool_bytes` is a measured pool of one GPU and beats the computed one."""

    id: str
    memory_utilization: float
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    kv_pool_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests in tokens; `concurrency` None means as many as fit. The targets are seconds."""

    prompt_tokens: int
    output_tokens: int
    concurrency: int | None
    prefix_hit_rate: float = 0.0
    slo_ttft_s: float | None = None
    slo_tpot_s: float | None = None

    @property
    def total_tokens(self) -> int:
        """Tokens of a sequence when its answer is complete."""
        return self.prompt_tokens + self.output_tokens

    @property
    def cached_prompt_tokens(self) -> int:
        """Prompt tokens found in the prefix cache, whole, and never all: the last one is always computed."""
        return min(int(self.prompt_tokens * self.prefix_hit_rate), self.prompt_tokens - 1)

    @property
    def mid_answer_tokens(self) -> float:
        """Context of the average decode step: prompt + output ÷ 2."""
        return self.prompt_tokens + self.output_tokens / 2


@dataclass(frozen=True, slots=True)
class Deployment:
    """Everything one evaluation reads. `tensor_parallel` GPUs share each layer: one replica of the model."""

    architecture: Architecture
    accelerator: Accelerator
    precision: Precision
    engine: Engine
    workload: Workload
    memory_basis: MemoryBasis = MemoryBasis.REPORTED
    tensor_parallel: int = 1

    @property
    def rank_architecture(self) -> Architecture:
        """The part of the model that one GPU holds."""
        return _rank(self.architecture, self.tensor_parallel)

    @property
    def head_layout(self) -> WeightLayout:
        """How the matrix that the head reads is stored: its own, or the embedding's where they are tied."""
        group = WeightGroup.EMBEDDING if self.architecture.tied_embeddings else WeightGroup.HEAD
        return self.precision.weights.layout(group)

    def matrix_dtype(self, layout: WeightLayout) -> Dtype:
        """Type of the arithmetic on matrices of a layout: the chosen one where it is wide enough for their elements.

        A checkpoint is mixed: beside experts in 4 bits stand matrices in 8 or 16, which narrower arithmetic cannot
        work on. They take 8-bit arithmetic where the card has it and it is enough, else the wide type.
        """
        compute, element = self.precision.compute, layout.element
        if element.bits <= compute.bits:
            return compute
        if element.bits <= Dtype.FP8.bits and Dtype.FP8 in self.accelerator.peak_flops_per_s:
            return Dtype.FP8
        return self.wide_dtype

    @property
    def wide_dtype(self) -> Dtype:
        """Type of the arithmetic outside the layers' matrices: what is not quantized is computed in 16 bits or more.

        On a card with no published 16-bit rate the matrix type stands in, which can only raise the ceiling.
        """
        compute = self.precision.compute
        if compute.bits >= Dtype.BF16.bits:
            return compute
        for dtype in (Dtype.BF16, Dtype.FP16):
            if dtype in self.accelerator.peak_flops_per_s:
                return dtype
        return compute

    @property
    def attention_dtype(self) -> Dtype:
        """Type of the scores and values: narrow only where cache and arithmetic both are."""
        compute = self.precision.compute
        narrow = self.precision.kv_cache.bits <= Dtype.FP8.bits and compute.bits == Dtype.FP8.bits
        return compute if narrow else self.wide_dtype


@lru_cache(maxsize=256)
def _rank(architecture: Architecture, ranks: int) -> Architecture:
    """Split once, not in every formula."""
    return architecture.split(ranks)
