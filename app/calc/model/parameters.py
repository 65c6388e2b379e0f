"""Which format each group of a checkpoint's weights is stored in.

Quantized checkpoints are mixed: the layers' matrices are narrow, while embedding, head, router, norms and biases stay
16-bit; some quantize the experts alone. A plan says so group by group, never with one factor for all.

How many parameters a model has, where they sit, how many of them a token meets, and how many bytes they take.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from app.calc.dtypes import WeightFormat, WeightLayout
from app.calc.model.architecture import Architecture, LayerGroup
from app.calc.model.layers.parts import FLOPS_PER_NORM_ELEMENT, OperatorName, WeightGroup, Weights, vector

NATIVE = "native"
"""Label of a plan that is none of the formats' own: what the checkpoint ships, mixed in its own way."""
LAYER_MATRICES = (
    WeightGroup.ATTENTION,
    WeightGroup.FEED_FORWARD,
    WeightGroup.SHARED_EXPERTS,
    WeightGroup.ROUTED_EXPERTS,
)
"""The groups that a quantization applies to unless a checkpoint says otherwise."""


@dataclass(frozen=True, slots=True)
class WeightPlan:
    """`wide` is the type of all vectors, and of every matrix whose group is not in `narrow`."""

    label: str
    wide: WeightLayout
    narrow: tuple[tuple[WeightGroup, WeightLayout], ...] = ()

    def layout(self, group: WeightGroup) -> WeightLayout:
        """How the matrices of a group are stored."""
        for named, layout in self.narrow:
            if named is group:
                return layout
        return self.wide

    @property
    def narrowest(self) -> WeightLayout:
        """The layout with the fewest bits: what decides which arithmetic pays."""
        return min((layout for _, layout in self.narrow), key=lambda layout: layout.element.bits, default=self.wide)


def convention(weights: WeightFormat, architecture: Architecture) -> WeightPlan:
    """What people mean by a format's name: all layer matrices but the router in it, the rest 16-bit.

    MXFP4 on a model with experts is theirs alone, as in the checkpoint that made the format known (gpt-oss).
    """
    if weights in (WeightFormat.FP32, WeightFormat.BF16, WeightFormat.FP16):
        return WeightPlan(weights, weights.layout)
    groups: Iterable[WeightGroup] = LAYER_MATRICES
    if weights is WeightFormat.MXFP4 and architecture.has_experts:
        groups = (WeightGroup.ROUTED_EXPERTS,)
    return WeightPlan(weights, WeightFormat.BF16.layout, tuple((group, weights.layout) for group in groups))


def named(plan: WeightPlan, architecture: Architecture) -> WeightPlan:
    """The plan under a format's own name where it is just what that name means, else as `NATIVE`."""
    for weights in WeightFormat:
        usual = convention(weights, architecture)
        if (usual.wide, set(usual.narrow)) == (plan.wide, set(plan.narrow)):
            return usual
    return replace(plan, label=NATIVE)


@dataclass(frozen=True, slots=True)
class GroupCount:
    """Parameters of one group. Vectors stay 16-bit; so do the matrices that these layers leave unquantized."""

    matrices: int = 0
    unquantized: int = 0
    vectors: int = 0

    @property
    def total(self) -> int:
        return self.matrices + self.unquantized + self.vectors

    def bytes(self, group: WeightGroup, plan: WeightPlan) -> float:
        """Bytes under a plan, scales included."""
        wide = plan.wide.bytes_per_weight
        return self.matrices * plan.layout(group).bytes_per_weight + (self.unquantized + self.vectors) * wide


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """Parameters by group, each stored table once; what is loaded beside the text model apart.

    `active` counts every weight that one token goes through, embedding and head included; `gathered` are the tables of
    which a token reads rows (the embedding unless it is the head too).
    """

    groups: Mapping[WeightGroup, GroupCount]
    vision: int
    mtp: Mapping[WeightGroup, GroupCount]
    active: float
    gathered: int
    embeddings: int

    @property
    def text(self) -> int:
        """The language model, each stored table counted once."""
        return sum(count.total for count in self.groups.values())

    @property
    def mtp_params(self) -> int:
        return sum(count.total for count in self.mtp.values())

    @property
    def total(self) -> int:
        return self.text + self.mtp_params + self.vision

    @property
    def read_per_token(self) -> float:
        """Weights that one token makes a server read: rows of a table are gathered, a tied table is the head."""
        return self.active - self.gathered

    @property
    def active_without_embedding(self) -> float:
        """The convention of gpt-oss, DeepSeek, Kimi and Nemotron: all but the input embedding."""
        return self.active - self.group(WeightGroup.EMBEDDING).total

    @property
    def active_without_embeddings(self) -> float:
        """The convention of GLM and MiniMax: neither embedding nor head."""
        return self.active - self.embeddings

    def group(self, group: WeightGroup) -> GroupCount:
        """The counts of one group, zero where the model has none."""
        return self.groups.get(group, GroupCount())


def layer_weights(group: LayerGroup, hidden_size: int, *, norm_bias: bool = False) -> Iterator[Weights]:
    """Every parameter of one layer of the group, operator by operator."""
    if group.norms:
        gains = (2 if norm_bias else 1) * group.norms * hidden_size
        flops = FLOPS_PER_NORM_ELEMENT * group.norms * hidden_size
        yield from vector(OperatorName.NORMS, WeightGroup.NORMS, gains, flops)
    for path in group.side_paths:
        yield from path.weights()
    if group.mixer is not None:
        yield from group.mixer.weights(hidden_size)
    for block in group.feed_forwards:
        yield from block.weights(hidden_size)


def final_norm_params(architecture: Architecture) -> int:
    """Parameters of the norm before the head."""
    if not architecture.holds_head:
        return 0
    return 2 * architecture.hidden_size if architecture.norm_bias else architecture.hidden_size


def head_params(architecture: Architecture) -> int:
    """Parameters of the matrix that the head reads: V·h, tied to the embedding or not."""
    return architecture.vocab_size * architecture.hidden_size


def side_table_params(architecture: Architecture) -> int:
    """Parameters of the tables beside the embedding, of which a token gathers rows (Gemma 3n's per-layer inputs)."""
    return sum(path.params for path in architecture.side_paths if path.gathered is not None)


@lru_cache(maxsize=512)
def count_parameters(architecture: Architecture) -> ParameterCounts:
    """Parameters of `architecture` by group.

    Worked number: Llama-3.1-8B has 525,336,576 in the embedding and as many in the head, 1,342,177,280 in attention,
    5,637,144,576 in the feed-forward blocks and 266,240 in norms: 8,030,261,248, the published total.
    """
    hidden, tied = architecture.hidden_size, architecture.tied_embeddings
    table, positions = head_params(architecture), architecture.learned_positions * hidden
    embedding = table if architecture.holds_embedding else 0
    head = table if architecture.holds_head and not (tied and embedding) else 0
    head_bias = architecture.vocab_size if architecture.head_bias and architecture.holds_head else 0
    groups = _counted(architecture.layers, hidden, norm_bias=architecture.norm_bias)
    _add(groups, WeightGroup.EMBEDDING, GroupCount(matrices=embedding + positions))
    _add(groups, WeightGroup.HEAD, GroupCount(matrices=head, vectors=head_bias))
    _add(groups, WeightGroup.NORMS, GroupCount(vectors=final_norm_params(architecture)))
    side = [w for path in architecture.side_paths for w in path.weights()]
    for weights in side:
        _add(groups, weights.group, _count_of(weights, 1, frozenset()))
    idle = sum(
        group.count * (weights.stored - weights.active)
        for group in architecture.layers
        for weights in layer_weights(group, hidden)
        if weights.is_choice
    )
    side_tables = side_table_params(architecture)
    mtp: dict[WeightGroup, GroupCount] = {}
    if architecture.mtp is not None:
        mtp = _counted(architecture.mtp.layers, hidden, norm_bias=architecture.norm_bias)
        _add(mtp, WeightGroup.SIDE_PATHS, GroupCount(vectors=architecture.mtp.joint_params))
    text = sum(count.total for count in groups.values())
    return ParameterCounts(
        groups=MappingProxyType(groups),
        vision=architecture.vision_params,
        mtp=MappingProxyType(mtp),
        active=text - idle,
        gathered=side_tables + positions + (embedding if head or not tied else 0),
        embeddings=side_tables + positions + embedding + head + head_bias,
    )


def _counted(layers: Iterable[LayerGroup], hidden_size: int, *, norm_bias: bool) -> dict[WeightGroup, GroupCount]:
    groups: dict[WeightGroup, GroupCount] = {}
    for group in layers:
        for weights in layer_weights(group, hidden_size, norm_bias=norm_bias):
            _add(groups, weights.group, _count_of(weights, group.count, group.unquantized))
    return groups


def _count_of(weights: Weights, layers: int, unquantized: frozenset[WeightGroup]) -> GroupCount:
    params = layers * weights.stored
    if not weights.is_matrix:
        return GroupCount(vectors=params)
    return GroupCount(unquantized=params) if weights.group in unquantized else GroupCount(matrices=params)


def _add(groups: dict[WeightGroup, GroupCount], group: WeightGroup, more: GroupCount) -> None:
    here = groups.get(group, GroupCount())
    groups[group] = GroupCount(
        here.matrices + more.matrices, here.unquantized + more.unquantized, here.vectors + more.vectors
    )


def weight_bytes(counts: ParameterCounts, plan: WeightPlan) -> float:
    """Bytes of everything a server loads: each group in its format with its scales, a vision tower 16-bit.

    Worked numbers: Llama-3.1-8B in bf16 is 8,030,261,248 × 2 = 16,060,522,496 B. gpt-oss-120b, experts in MXFP4, is
    65,248,815,744 B, the size of its published files to the byte.
    """
    return text_weight_bytes(counts, plan) + _bytes(counts.mtp, plan) + counts.vision * plan.wide.bytes_per_weight


def text_weight_bytes(counts: ParameterCounts, plan: WeightPlan) -> float:
    """Bytes of the language model alone."""
    return _bytes(counts.groups, plan)


def _bytes(groups: Mapping[WeightGroup, GroupCount], plan: WeightPlan) -> float:
    return sum(count.bytes(group, plan) for group, count in groups.items())
