"""Which accelerators hold a model, and which models an accelerator holds: memory alone, as the workbench counts it.

A card holds a model when the usual engine with its defaults finds room for one user at least. What it needs beside the
cache depends on the card only by its class, so it is worked out once for a model and a class.

What is worked out of each catalog model: the numbers that its page, the list of models and their JSON all show.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from app.calc.accelerator import Accelerator, MemoryBasis
from app.calc.broadcast import scalar
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.memory.cache import CacheShape, cache_shape, kv_bytes_per_sequence
from app.calc.memory.engines.parts import CachePlan, Interval, Overhead, Rank, Settings
from app.calc.model.architecture import Architecture, MixerKind, model_kind
from app.calc.model.attention_variants import multi_head_bytes_per_sequence
from app.calc.model.parameters import ParameterCounts, WeightPlan, convention, count_parameters, weight_bytes
from app.calc.model.split import Split, SplitError
from app.catalog.catalog import Catalog
from app.catalog.engines import EngineRecord, is_latent, usual_batch
from app.catalog.models import Checkpoint, ModelRecord

ENGINE = "vllm"
"""The engine of a scenario that names none."""
CONTEXT_TOKENS = 8_192
KV_CACHE = Dtype.BF16
MEMORY_UTILIZATION = 0.9
GPU_COUNTS = (1, 2, 4, 8)
NARROWER = (WeightFormat.FP8, WeightFormat.INT4)
"""The formats that are looked at beside the shipped one, where their elements are narrower than its own."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What one GPU needs under the engine's default batch of a class of cards."""

    weights: Interval
    overheads: tuple[Overhead, ...]
    settings: Settings
    plan: CachePlan


class Share:
    """What each of `gpus` tensor-parallel cards holds, under the usual engine with its defaults."""

    def __init__(self, gpus: int, rank: Rank, tokens: int, engine: EngineRecord) -> None:
        self.gpus = gpus
        self._rank, self._tokens, self._engine = rank, tokens, engine
        self._policy = engine.make_policy(None)
        self._needs: dict[tuple[int, int, bool], Needs] = {}

    @property
    def weight_bytes(self) -> float:
        return self._rank.weights_bytes

    @property
    def sequence_bytes(self) -> float:
        """Cache of one user on one card, before an engine rounds it to blocks."""
        return scalar(kv_bytes_per_sequence(self._rank.architecture, self._tokens, KV_CACHE))

    def users(self, accelerator: Accelerator) -> int:
        """Users whose cache fits beside what the engine needs.

        Worked number: an H100 SXM (79.18 GiB seen) holds Llama-3.1-8B in bf16 with a pool of 54.22 GiB: 54 users.
        """
        needs = self._needs_on(accelerator)
        seen = accelerator.seen_bytes(MemoryBasis.REPORTED)
        pool: Interval = self._policy.pool(seen, needs.weights, needs.overheads, needs.settings)
        return needs.plan.fitting(max(0.0, pool.mid), self._tokens)

    def _needs_on(self, accelerator: Accelerator) -> Needs:
        """Worked out once for each class of cards: they differ in the default batch and in how they are linked."""
        step, sequences = usual_batch(self._engine, self._engine.release(None), accelerator)
        kind = (step, sequences, accelerator.is_bus_linked)
        if kind not in self._needs:
            settings = replace(self._rank.settings, step_tokens=step, profiled_seqs=sequences)
            rank = replace(self._rank, settings=settings, is_bus_linked=accelerator.is_bus_linked)
            weights = self._policy.weights.interval(rank.weights_bytes)
            overheads = self._policy.overheads(rank, 0.0)
            self._needs[kind] = Needs(weights, overheads, settings, self._policy.plan(rank))
        return self._needs[kind]


@dataclass(frozen=True, slots=True)
class Load:
    """A model in one format of its weights. `weights` names the format in a scenario, `tokens` are those of a user.

    `shares` are in the order of `GPU_COUNTS`, without the counts that do not divide its heads.
    """

    weights: str
    weight_bytes: float
    tokens: int
    shares: tuple[Share, ...]

    def on_one(self, accelerator: Accelerator) -> "Holding | None":
        """How one card holds it; None where it does not."""
        users = self.shares[0].users(accelerator)
        return Holding(1, users) if users else None

    def fewest(self, accelerator: Accelerator) -> "Holding | None":
        """The fewest cards that hold it, and for how many users; None where no count of `shares` is enough."""
        for share in self.shares:
            if users := share.users(accelerator):
                return Holding(share.gpus, users)
        return None


@dataclass(frozen=True, slots=True)
class Holding:
    """So many cards together hold a model, with room for so many users at a time."""

    gpus: int
    users: int


def loads(
    architecture: Architecture, shipped: WeightPlan, engine: EngineRecord, gpu_counts: Iterable[int] = GPU_COUNTS
) -> tuple[Load, ...]:
    """The model as it is shipped, and in each format of narrower elements: nobody widens a checkpoint to serve it."""
    tokens = min(CONTEXT_TOKENS, architecture.max_position or CONTEXT_TOKENS)
    parts = list(_parts(architecture, gpu_counts))
    bits = shipped.narrowest.element.bits
    narrower = [convention(fmt, architecture) for fmt in NARROWER if fmt.layout.element.bits < bits]
    block = engine.latent_block_tokens if is_latent(architecture) else engine.block_tokens
    policy = engine.make_policy(None)
    settings = Settings(MEMORY_UTILIZATION, architecture.max_position or tokens, 0, block_tokens=block)

    def share(split: Split, part: Architecture, plan: WeightPlan) -> Share:
        weights = weight_bytes(count_parameters(part), plan) + policy.padding_bytes(part, plan)
        return Share(split.gpus, Rank(part, architecture, split, KV_CACHE, settings, weights), tokens, engine)

    return tuple(
        Load(
            weights=str(plan.label),
            weight_bytes=weight_bytes(count_parameters(architecture), plan),
            tokens=tokens,
            shares=tuple(share(split, part, plan) for split, part in parts),
        )
        for plan in (shipped, *narrower)
    )


def _parts(architecture: Architecture, gpu_counts: Iterable[int]) -> Iterator[tuple[Split, Architecture]]:
    for gpus in gpu_counts:
        split = Split(gpus)
        try:
            yield split, architecture.split(split)
        except SplitError:
            continue


KV_CONTEXTS = (1_024, CONTEXT_TOKENS, 131_072)


@dataclass(frozen=True, slots=True)
class CacheAt:
    """The cache of one sequence at a context, in bf16. `multi_head_bytes` is the same with plain multi-head attention.

    `beyond_limit` marks a context that the model was not made for; the number is what the formula gives all the same.
    """

    context_tokens: int
    sequence_bytes: float
    multi_head_bytes: float | None
    beyond_limit: bool

    @property
    def bytes_per_token(self) -> float:
        """Divided by the tokens, states included."""
        return self.sequence_bytes / self.context_tokens

    @property
    def saving(self) -> float | None:
        """How many times less than with multi-head attention."""
        return self.multi_head_bytes / self.sequence_bytes if self.multi_head_bytes and self.sequence_bytes else None


@dataclass(frozen=True, slots=True)
class ShippedFiles:
    """One published set of files: what a server loads of it, what else is in it, and its published size where known."""

    checkpoint: Checkpoint
    loaded_bytes: float
    mtp_bytes: float
    duplicate_bytes: float

    @property
    def computed_bytes(self) -> float:
        """The files by our count."""
        return self.loaded_bytes + self.mtp_bytes + self.duplicate_bytes

    @property
    def difference_bytes(self) -> float | None:
        """Published less computed; None where no size is published."""
        published = self.checkpoint.file_bytes
        return None if published is None else published - self.computed_bytes


class ModelFacts:
    """The numbers of one model. Each is worked out when it is first asked for."""

    def __init__(self, record: ModelRecord, engine: EngineRecord) -> None:
        self.record, self._engine = record, engine

    @property
    def architecture(self) -> Architecture:
        """The model for the calculators."""
        return self.record.architecture

    @cached_property
    def counts(self) -> ParameterCounts:
        """Its parameters, multi-token prediction not loaded."""
        return count_parameters(self.architecture)

    @cached_property
    def kind(self) -> MixerKind:
        """The sort of its attention."""
        return model_kind(self.architecture)

    @cached_property
    def has_experts(self) -> bool:
        """True for a mixture of experts."""
        return self.architecture.has_experts

    @cached_property
    def cache_at(self) -> tuple[CacheAt, ...]:
        """The cache at each of `KV_CONTEXTS`."""
        return tuple(self._cache_at(tokens) for tokens in KV_CONTEXTS)

    def _cache_at(self, tokens: int) -> CacheAt:
        limit, plain = (
            self.architecture.max_position,
            multi_head_bytes_per_sequence(self.architecture, tokens, KV_CACHE),
        )
        return CacheAt(
            tokens,
            scalar(kv_bytes_per_sequence(self.architecture, tokens, KV_CACHE)),
            None if plain is None else scalar(plain),
            limit is not None and tokens > limit,
        )

    @cached_property
    def usual_cache(self) -> CacheAt:
        """The cache at 8,192 tokens."""
        return next(at for at in self.cache_at if at.context_tokens == CONTEXT_TOKENS)

    @cached_property
    def cache_shape(self) -> CacheShape:
        """What one sequence keeps, like layers together."""
        return cache_shape(self.architecture)

    @cached_property
    def files(self) -> tuple[ShippedFiles, ...]:
        """Every published set of files, the shipped one first."""
        return tuple(self._files(checkpoint) for checkpoint in self.record.checkpoints)

    def _files(self, checkpoint: Checkpoint) -> ShippedFiles:
        loaded = checkpoint.computed_bytes(self.architecture)
        if not checkpoint.carries_mtp or self.record.mtp is None:
            return ShippedFiles(checkpoint, loaded, 0, 0)
        with_mtp = checkpoint.computed_bytes(self.record.architecture_with_mtp)
        copies = self.record.mtp.duplicate_params or 0
        with_copies = checkpoint.computed_bytes(self.record.architecture_with_mtp, copies)
        return ShippedFiles(checkpoint, loaded, with_mtp - loaded, with_copies - with_mtp)

    @property
    def shipped(self) -> ShippedFiles:
        """The first of them: what "as shipped" means."""
        return self.files[0]

    @cached_property
    def weight_bytes(self) -> Mapping[WeightFormat, float]:
        """Bytes of the weights in every format that has a name."""
        return {fmt: weight_bytes(self.counts, convention(fmt, self.architecture)) for fmt in WeightFormat}

    @cached_property
    def mtp_params(self) -> int:
        """Parameters of the multi-token-prediction layers, copies of embedding and head aside."""
        return count_parameters(self.record.architecture_with_mtp).mtp_params

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        """What one card, or several, have to hold of it."""
        return loads(self.architecture, self.record.native_plan, self._engine)


class ModelShelf:
    """The facts of every model of a catalog, each worked out once for as long as the application runs."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.facts: Mapping[str, ModelFacts] = {
            id_: ModelFacts(record, catalog.engines[ENGINE]) for id_, record in catalog.models.items()
        }

    def derived_from(self, id_: str) -> list[ModelRecord]:
        """The models that name this one as the one they were made from."""
        records = (facts.record for facts in self.facts.values())
        return [record for record in records if record.lineage is not None and record.lineage.base == id_]
