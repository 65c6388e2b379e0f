"""Which accelerators hold a model, and which models an accelerator holds: memory alone, as the workbench counts it.

A card holds a model when nine tenths of the memory its driver reports take the weights and the cache of one user at
least. Weights and cache of a user do not depend on the card, so they are worked out once for a model.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.calc.accelerator import Accelerator, MemoryBasis
from app.calc.architecture import Architecture
from app.calc.broadcast import scalar
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.kv_cache import kv_bytes_per_sequence
from app.calc.layers.parts import SplitError
from app.calc.memory import kv_pool_bytes, whole_sequences
from app.calc.parameters import count_parameters, weight_bytes
from app.calc.weight_plan import WeightPlan, convention

CONTEXT_TOKENS = 8_192
KV_CACHE = Dtype.BF16
MEMORY_UTILIZATION = 0.9
GPU_COUNTS = (1, 2, 4, 8)
NARROWER = (WeightFormat.FP8, WeightFormat.INT4)
"""The formats that are looked at beside the shipped one, where their elements are narrower than its own."""


@dataclass(frozen=True, slots=True)
class Share:
    """What each of `gpus` tensor-parallel cards holds: weights, and the cache of one user."""

    gpus: int
    weight_bytes: float
    sequence_bytes: float

    def users(self, accelerator: Accelerator) -> int:
        """Users whose cache fits beside the weights: ⌊(0.9 · memory − weights) ÷ cache of one⌋.

        Worked number: an H100 SXM (81,559 MiB) holds Llama-3.1-8B in bf16 with (76.968 − 16.061) ÷ 1.0737 = 56 users.
        """
        budget = accelerator.memory_bytes(MemoryBasis.REPORTED) * MEMORY_UTILIZATION
        return whole_sequences(kv_pool_bytes(budget, self.weight_bytes), self.sequence_bytes)


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


def loads(architecture: Architecture, shipped: WeightPlan, gpu_counts: Iterable[int] = GPU_COUNTS) -> tuple[Load, ...]:
    """The model as it is shipped, and in each format of narrower elements: nobody widens a checkpoint to serve it."""
    tokens = min(CONTEXT_TOKENS, architecture.max_position or CONTEXT_TOKENS)
    ranks = [
        (gpus, count_parameters(rank), scalar(kv_bytes_per_sequence(rank, tokens, KV_CACHE)))
        for gpus, rank in _ranks(architecture, gpu_counts)
    ]
    bits = shipped.narrowest.element.bits
    narrower = [convention(fmt, architecture) for fmt in NARROWER if fmt.layout.element.bits < bits]
    return tuple(
        Load(
            weights=str(plan.label),
            weight_bytes=weight_bytes(count_parameters(architecture), plan),
            tokens=tokens,
            shares=tuple(Share(gpus, weight_bytes(counts, plan), sequence) for gpus, counts, sequence in ranks),
        )
        for plan in (shipped, *narrower)
    )


def _ranks(architecture: Architecture, gpu_counts: Iterable[int]) -> Iterator[tuple[int, Architecture]]:
    for gpus in gpu_counts:
        try:
            yield gpus, architecture.split(gpus)
        except SplitError:
            continue
