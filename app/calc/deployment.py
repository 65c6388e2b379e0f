"""What is evaluated: a model on an accelerator, in a precision, under an engine and a workload. Facts only, no ids.

The part of a model that one GPU of each pipeline stage holds.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache

from app.calc.accelerator import Accelerator, MemoryBasis
from app.calc.dtypes import Dtype, WeightLayout
from app.calc.memory.engines.ideal import IdealPolicy
from app.calc.memory.engines.parts import NOTHING_GIVEN, Draft, Given, Policy
from app.calc.model.architecture import Architecture
from app.calc.model.layers.parts import WeightGroup
from app.calc.model.parameters import WeightPlan
from app.calc.model.split import ONE_GPU, Split, stage_sizes
from app.calc.time.expected.calibration import Calibration, OwnCalibration
from app.calc.time.lengths import Lengths, Shape
from app.calc.time.prefill_pool import PrefillPool
from app.calc.time.speculation import Speculation


@dataclass(frozen=True, slots=True)
class Precision:
    """Formats of the stored weights, of the cache, and of the arithmetic in the layers' matrices."""

    weights: WeightPlan
    kv_cache: Dtype
    compute: Dtype


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine, its rules for memory, and its settings; what is `given` was measured and beats what is assumed.

    `max_model_len` None is the model's own limit. `max_num_seqs` is that of one data-parallel rank; None sets none.
    `stack` and `pace` are the kernels and the scheduler that the calibration knows it by. Prompts are prefilled in
    steps of `step_tokens` where the engine `chunks_prefill`, else whole. A static batch starts together and ends with
    its longest answer. `reserved_tokens` are set aside for each sequence, whatever it comes to, where the cache is not
    paged; None pages it. `shared_tokens` of every prompt are the same, and kept once.
    """

    id: str
    memory_utilization: float
    policy: Policy = field(default_factory=IdealPolicy)
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    profiled_seqs: int = 256
    step_tokens: int = 8192
    block_tokens: int = 16
    prefix_caching: bool = True
    is_eager: bool = False
    draft_tokens: int = 0
    given: Given = NOTHING_GIVEN
    stack: str = "server"
    pace: str = ""
    chunks_prefill: bool = True
    is_static: bool = False
    reserved_tokens: int | None = None
    shared_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests in tokens; `concurrency` None means as many as fit. The targets are seconds.

    Answers have `output_tokens` on average; `answer_shape` and `longest_answer` say how they are spread, which matters
    to what reserves room for the longest, or waits for it.
    """

    prompt_tokens: int
    output_tokens: int
    concurrency: int | None
    prefix_hit_rate: float = 0.0
    slo_ttft_s: float | None = None
    slo_tpot_s: float | None = None
    answer_shape: Shape = Shape.FIXED
    longest_answer: int | None = None

    @property
    def lengths(self) -> Lengths:
        return Lengths(self.answer_shape, float(self.output_tokens), self.longest_answer)

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
class Observed:
    """What an engine's log says came out; it stands beside the prediction and changes nothing."""

    kv_tokens: int | None = None
    gpu_blocks: int | None = None
    max_concurrency: float | None = None

    @property
    def is_empty(self) -> bool:
        """True where nothing was observed."""
        return self.kv_tokens is None and self.gpu_blocks is None and self.max_concurrency is None


NOTHING_OBSERVED = Observed()


@dataclass(frozen=True, slots=True)
class Deployment:
    """Everything one evaluation reads: `replicas` of a model that is `split` over GPUs, all alike.

    Without a `calibration` there are ceilings only; the user's `own_calibration` stands on it. With a `prefill_pool`
    these GPUs only decode.
    `published_architecture` is the model as it was trained, where another attention was put into it.
    """

    architecture: Architecture
    accelerator: Accelerator
    precision: Precision
    engine: Engine
    workload: Workload
    memory_basis: MemoryBasis = MemoryBasis.REPORTED
    split: Split = ONE_GPU
    replicas: int = 1
    draft: Draft | None = None
    observed: Observed = NOTHING_OBSERVED
    calibration: Calibration | None = None
    speculation: Speculation | None = None
    prefill_pool: PrefillPool | None = None
    published_architecture: Architecture | None = None
    own_calibration: OwnCalibration | None = None

    @property
    def gpus(self) -> int:
        """All GPUs: replicas × tensor × pipeline × data, and those of a prefill pool."""
        return self.decode_gpus + (self.prefill_pool.gpus if self.prefill_pool else 0)

    @property
    def decode_gpus(self) -> int:
        """All but those of a prefill pool."""
        return self.replicas * self.split.gpus

    @property
    def prompt_side(self) -> "Deployment":
        """Where prompts are prefilled: an instance of the prefill pool, or a replica of this very deployment."""
        return self if self.prefill_pool is None else _prompt_side(self, self.prefill_pool)

    @property
    def rates(self) -> frozenset[Dtype]:
        """Types of arithmetic that the card has a published rate of, and the card of a prefill pool too."""
        own = frozenset(self.accelerator.peak_flops_per_s)
        pool = self.prefill_pool
        return own if pool is None else own & frozenset(pool.accelerator.peak_flops_per_s)

    @property
    def positions(self) -> int:
        """Positions of each sequence in a decode step: one, and those that were guessed."""
        return self.speculation.positions if self.speculation else 1

    @property
    def tokens_per_step(self) -> float:
        """Tokens that a decode step gives to each sequence, in expectation."""
        return self.speculation.tokens_per_step if self.speculation else 1.0

    @property
    def shared_tokens(self) -> int:
        """Tokens of the prompt that all sequences have in common and that stand in the cache once: whole blocks."""
        engine = self.engine
        block = max(1, engine.block_tokens)
        return min(engine.shared_tokens, self.workload.prompt_tokens - 1) // block * block

    def held(self, tokens: int) -> int:
        """Tokens that a sequence of so many takes room for of its own: less what it shares with the others, but a block
        at least; or what is reserved for it, where that is more.
        """
        own = max(tokens, self.engine.reserved_tokens or 0) - self.shared_tokens
        return max(own, min(tokens, self.engine.block_tokens), 1)

    @property
    def held_tokens(self) -> int:
        """The same for prompt and complete answer."""
        return self.held(self.workload.total_tokens)

    @property
    def rank_architecture(self) -> Architecture:
        """The part of the model that one GPU of each stage holds, all stages in a row."""
        return _rank(self.architecture, self.split)

    @property
    def max_model_len(self) -> int:
        """The longest sequence served: as set, or what the model was made for, or the workload's."""
        return self.engine.max_model_len or self.architecture.max_position or self.workload.total_tokens

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


def _prompt_side(deployment: Deployment, pool: PrefillPool) -> Deployment:
    return replace(
        deployment, accelerator=pool.accelerator, split=pool.split, replicas=pool.instances, prefill_pool=None
    )


@lru_cache(maxsize=256)
def _rank(architecture: Architecture, split: Split) -> Architecture:
    """Split once, not in every formula."""
    return architecture.split(split)


@lru_cache(maxsize=512)
def stage_architectures(architecture: Architecture, split: Split) -> tuple[Architecture, ...]:
    """What one GPU of each stage holds, first stage to last; the GPUs of a stage are alike.

    The embedding, its side tables and a vision tower stand on the first stage, the head, the last norm and the layers
    that guess further tokens on the last. A tied table is held at both ends.

    Raises:
        SplitError: something does not divide.
    """
    part = architecture.split(split)
    if split.pipeline == 1:
        return (part,)
    order = part.order or _in_groups(part)
    found, start = [], 0
    for place, size in enumerate(stage_sizes(len(order), split.pipeline)):
        first, last = place == 0, place == split.pipeline - 1
        found.append(_cut(part, order[start : start + size], first=first, last=last))
        start += size
    return tuple(found)


def _in_groups(architecture: Architecture) -> tuple[int, ...]:
    """The order of a model that tells none: group after group."""
    return tuple(place for place, group in enumerate(architecture.layers) for _ in range(group.count))


def _cut(part: Architecture, order: tuple[int, ...], *, first: bool, last: bool) -> Architecture:
    counts = Counter(order)
    kept = [place for place in range(len(part.layers)) if counts[place]]
    return replace(
        part,
        layers=tuple(replace(part.layers[place], count=counts[place]) for place in kept),
        order=tuple(kept.index(place) for place in order),
        holds_embedding=first,
        holds_head=last,
        learned_positions=part.learned_positions if first else 0,
        vision_params=part.vision_params if first else 0,
        side_paths=part.side_paths if first else (),
        mtp=part.mtp if last else None,
    )
