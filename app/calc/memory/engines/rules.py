"""How large an overhead is taken to be: laws with an interval and their evidence; what was measured comes first.

What a forward pass holds beside weights and cache: the peak that an engine measures before it sizes its cache.

What loading adds to weights: kernels that want their matrices in whole tiles.

What the policies of real engines have in common: they see what the driver leaves, and assume by their laws.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from app.calc.dtypes import Dtype, WeightFormat
from app.calc.memory.cache import CachedLayers, CacheFormat, cached_layers
from app.calc.memory.engines.parts import CachePlan, Interval, Overhead, Part, Rank, WeightSpread
from app.calc.model.architecture import Architecture
from app.calc.model.layers.experts import ExpertGroup, Experts
from app.calc.model.layers.parts import WeightGroup
from app.calc.model.parameters import WeightPlan
from app.calc.quantity import GIB

GIVEN = "Given with the scenario; what was measured beats what is assumed."


@dataclass(frozen=True, slots=True)
class Law:
    """`factor` × what the physics says + `fixed_gib` + `per_gpu_gib` for each GPU that takes part.

    Eight of ten logs lie between `low` and `high` times that. `n` logs stand behind it, and `{n}` in the evidence.
    """

    fixed_gib: float
    low: float
    high: float
    evidence: str
    factor: float = 1.0
    per_gpu_gib: float = 0.0
    n: int = 0

    @property
    def words(self) -> str:
        """The evidence with the count of its logs."""
        return self.evidence.replace("{n}", str(self.n))

    def interval(self, physical_bytes: float = 0.0, scale: float = 1.0, gpus: int = 0) -> Interval:
        """The interval in bytes."""
        mid = scale * (self.factor * physical_bytes + (self.fixed_gib + gpus * self.per_gpu_gib) * GIB)
        return Interval(mid * self.low, mid, mid * self.high)


@dataclass(frozen=True, slots=True)
class OverheadLaws:
    """The laws of one engine; one without `graphs` captures none.

    Non-framework memory grows with the first peer: collectives keep their buffers. They are small where peers have no
    fabric of their own between them (`over_bus`). `sharing` stands for it where the engine reckons with what is free
    and the machine's other programs hold a part of the same memory.
    """

    activation: Law
    alone: Law
    with_peers: Law
    weights: WeightSpread
    graphs: Law | None = None
    sharing: Law | None = None
    over_bus: Law | None = None

    def non_framework(self, given: float | None, rank: Rank) -> Overhead:
        """That of a GPU alone, of one among several, or of one whose memory is the machine's."""
        gpus = rank.split.gpus
        law = self.alone if gpus == 1 else self.with_peers
        if gpus > 1 and rank.is_bus_linked and self.over_bus is not None:
            law = self.over_bus
        if rank.shares_memory and self.sharing is not None:
            law = self.sharing
        if given is not None:
            return Overhead(Part.NON_FRAMEWORK, Interval.exactly(given), True, True, GIVEN)
        return Overhead(Part.NON_FRAMEWORK, law.interval(gpus=gpus), False, True, law.words)


def found(
    part: Part,
    given: float | None,
    law: Law,
    physical_bytes: float = 0.0,
    least_bytes: float | None = None,
    *,
    scale: float = 1.0,
    is_charged: bool = True,
) -> Overhead:
    """The overhead: as given, or as the law has it; `least_bytes` is the physics where it may be less than usual."""
    if given is not None:
        return Overhead(part, Interval.exactly(given), True, is_charged, GIVEN)
    assumed = law.interval(physical_bytes, scale)
    if least_bytes is not None:
        assumed = replace(assumed, low=min(assumed.low, law.interval(least_bytes, scale).low))
    return Overhead(part, assumed, False, is_charged, law.words)


HIDDEN_ROWS = 4
"""Rows of the hidden size that are alive at a time: the residual, its norm, the block's input and its output."""
ROWS_BESIDE_LOGITS = 1.28
"""Rows of the hidden size for each token that still stand while the last logits are sampled."""
LOGIT_BYTES = 38.25
"""Bytes for each logit of a sampler that sorts: the logits in 16 and 32 bits, the sorted copies, indices, sums."""
VISION_BYTES = 1.7 * 2**30
"""Peak of a vision encoder at its largest picture."""
RECURRENT_SHARE = 0.11
"""Elements alive for each token of a recurrence that runs in chunks, for each element of its state.

Queries, keys, values, gates and their products are some twelve rows of a head's width (state ÷ 128), and each chunk of
64 tokens keeps a state of its own.
"""


def forward_bytes(part: Architecture, tokens: int) -> float:
    """Peak of one pass of `tokens` through the widest layer of a GPU's part: 2 B × tokens × (4·h + widest).

    Worked number: 32,768 tokens of Qwen2.5-7B: 2 × 32,768 × (4 × 3,584 + 3 × 18,944) = 4.66e9 B; a log has 4.35 GiB.
    """
    widest = max(_widths(part), default=0)
    return Dtype.BF16.bytes * tokens * (HIDDEN_ROWS * part.hidden_size + widest)


def _widths(part: Architecture) -> Iterable[int]:
    for group in part.loaded_layers:
        yield max((block.live_elements(part.hidden_size) for block in group.feed_forwards), default=0)
        if group.mixer is not None:
            yield round(RECURRENT_SHARE * max((state.elements for state in group.mixer.state()), default=0))


def sampling_bytes(whole: Architecture, tokens: int, sequences: int, logit_bytes: float = LOGIT_BYTES) -> float:
    """Peak while the logits of `sequences` are sampled, the hidden rows of the pass still there.

    Every GPU that samples has the whole vocabulary. Worked number: 1,024 sequences of Llama-3.1-8B after 8,192 tokens:
    1,024 × 128,256 × 38.25 + 1.28 × 8,192 × 4,096 × 2 = 5.11e9 B; a log has 4.76 GiB.
    """
    hidden = ROWS_BESIDE_LOGITS * tokens * whole.hidden_size * Dtype.BF16.bytes
    return sequences * whole.vocab_size * logit_bytes + hidden


def activation_peak(
    part: Architecture, whole: Architecture, tokens: int, sequences: int, logit_bytes: float = LOGIT_BYTES
) -> float:
    """The larger of the two, or of a vision encoder's where there is one.

    Source: start-up logs of vLLM 0.6 to 0.30 that print the peak; see docs/memory.md.
    """
    sampled = sampling_bytes(whole, tokens, min(sequences, tokens), logit_bytes) if part.holds_head else 0.0
    seen = VISION_BYTES if part.vision_params else 0.0
    return max(forward_bytes(part, tokens), sampled, seen)


HIDDEN_TILE = 256
WIDTH_TILE = 64


def mxfp4_padding_bytes(part: Architecture, plan: WeightPlan) -> float:
    """Bytes that padding adds to experts in MXFP4: the hidden size to 256, the width of an expert to 64.

    Worked number: gpt-oss-120b on 4 GPUs, 3,072 × 768 for 2,880 × 720: 2.0 GiB; a log has 17.22 GiB against the
    15.23 GiB of the tensors.
    """
    layout = plan.layout(WeightGroup.ROUTED_EXPERTS)
    if layout != WeightFormat.MXFP4.layout:
        return 0.0
    added = 0
    for group in part.loaded_layers:
        for block in group.feed_forwards:
            experts = block.whole if isinstance(block, ExpertGroup) else block
            if not isinstance(experts, Experts):
                continue
            hidden, width = experts.latent_size or part.hidden_size, experts.intermediate_size
            tiles = -(-hidden // HIDDEN_TILE) * HIDDEN_TILE * -(-width // WIDTH_TILE) * WIDTH_TILE
            groups = block.groups if isinstance(block, ExpertGroup) else 1
            matrices = 3 if experts.gated else 2
            added += group.count * -(-experts.n_experts // groups) * matrices * (tiles - hidden * width)
    return added * layout.bytes_per_weight


class RuledByLaws:
    """A policy with laws; each engine says how large its pass is, what it charges, and how it cuts the cache up."""

    __slots__ = ()
    laws: OverheadLaws

    @property
    def sees_all(self) -> bool:
        """No: the driver keeps a part."""
        return False

    @property
    def weights(self) -> WeightSpread:
        """As the logs have it."""
        return self.laws.weights

    def padding_bytes(self, part: Architecture, plan: WeightPlan) -> float:
        """None is known."""
        return 0.0

    def reserved_bytes(self, rank: Rank, plan: CachePlan) -> float:
        """None: a pool is shared by what runs."""
        return 0.0

    def assumed(
        self,
        rank: Rank,
        peak_bytes: float,
        least_bytes: float | None = None,
        *,
        charges_peak: bool = True,
        charges_graphs: bool = False,
    ) -> tuple[Overhead, ...]:
        """Activations, non-framework memory, and graphs where the engine captures any; each as given, or by its law."""
        given, laws = rank.settings.given, self.laws
        peak = found(
            Part.ACTIVATION, given.activation, laws.activation, peak_bytes, least_bytes, is_charged=charges_peak
        )
        rest = laws.non_framework(given.non_framework, rank)
        if laws.graphs is None:
            return peak, rest
        scale = 0.0 if rank.settings.is_eager else 1.0
        graphs = found(Part.GRAPHS, given.graphs, laws.graphs, scale=scale, is_charged=charges_graphs)
        return peak, rest, graphs


def rank_layers(rank: Rank, stored: CacheFormat | None = None) -> CachedLayers:
    """What the layers of one GPU keep, a draft's included; elements side by side unless `stored` says otherwise."""
    draft = rank.draft.architecture if rank.draft else None
    stored = stored or CacheFormat.plain(rank.kv_cache)
    return cached_layers(rank.architecture, stored, rank.settings.draft_tokens, draft)
