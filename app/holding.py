"""Which accelerators hold a model, and which models an accelerator holds: memory alone, as the workbench counts it.

A card holds a model when the usual engine with its defaults finds room for one user at least. What it needs beside the
cache depends on the card only by its class, so it is worked out once for a model and a class.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from app.calc.accelerator import Accelerator, MemoryBasis
from app.calc.architecture import Architecture
from app.calc.broadcast import scalar
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.engines.parts import CachePlan, Interval, Overhead, Rank, Settings
from app.calc.kv_cache import kv_bytes_per_sequence
from app.calc.parameters import count_parameters, weight_bytes
from app.calc.split import Split, SplitError
from app.calc.weight_plan import WeightPlan, convention
from app.catalog.engine_defaults import is_latent, usual_batch
from app.catalog.engines import EngineRecord

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
        """Weights on one card."""
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
