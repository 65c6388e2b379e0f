"""Which format each group of a checkpoint's weights is stored in.

Quantized checkpoints are mixed: the layers' matrices are narrow, while embedding, head, router, norms and biases stay
16-bit; some quantize the experts alone. A plan says so group by group, never with one factor for all.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from app.calc.architecture import Architecture
from app.calc.dtypes import WeightFormat, WeightLayout
from app.calc.layers.parts import WeightGroup

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
