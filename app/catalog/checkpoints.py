"""How a published checkpoint stores its weights: a format for each group that is not in its wide type."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated

from app.calc.architecture import Architecture
from app.calc.dtypes import Dtype, WeightFormat, WeightLayout
from app.calc.layers.parts import WeightGroup
from app.calc.parameters import count_parameters, weight_bytes
from app.calc.weight_plan import WeightPlan, named
from app.catalog.rows import READ_ONLY


@dataclass(frozen=True, slots=True)
class Scheme:
    """A format by its name, or elements with `scale_bits` of scale and zero for each block, where none has a name."""

    format: WeightFormat | None = None
    element: Dtype | None = None
    block_elements: int = 1
    scale_bits: int | None = None

    @property
    def layout(self) -> WeightLayout:
        """The same for the calculators.

        Raises:
            ValueError: neither a format nor an element is given, or both.
        """
        if (self.format is None) == (self.element is None):
            raise ValueError("give a format, or an element")
        if self.format is not None:
            return self.format.layout
        assert self.element is not None  # noqa: S101  # for the type checker: one of the two is there
        return WeightLayout(self.element, self.block_elements, self.scale_bits or 0)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One published set of files. `file_bytes` is their size where it is known; `hub_id` where it is not the model's.

    `carries_mtp` says that the multi-token-prediction layers, and the copies they bring, are in the files.
    """

    label: str
    wide: WeightFormat = WeightFormat.BF16
    narrow: Annotated[Mapping[WeightGroup, Scheme], READ_ONLY] = field(default_factory=lambda: MappingProxyType({}))
    hub_id: str | None = None
    file_bytes: int | None = None
    carries_mtp: bool = False

    def plan(self, architecture: Architecture) -> WeightPlan:
        """The same for the calculators, under a format's own name where it is what that name means."""
        narrow = tuple((group, scheme.layout) for group, scheme in self.narrow.items())
        return named(WeightPlan("", self.wide.layout, narrow), architecture)

    def computed_bytes(self, architecture: Architecture, duplicate_params: int = 0) -> float:
        """Bytes of the files by our count; copies of embedding and head are in the wide type."""
        plan = self.plan(architecture)
        return weight_bytes(count_parameters(architecture), plan) + duplicate_params * plan.wide.bytes_per_weight
