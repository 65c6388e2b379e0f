"""The wire form of the optimizations, for the documentation: what `app.optimizations_document` writes."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from app.api.schemas import Explanation
from app.calc.optimize.registry import SPECS
from app.scenario import Scenario


class OptimizationFigure(BaseModel):
    """One number without the optimization and with it, in SI units; null where it is not known of that side."""

    label: str
    before: float | None = Field(description="Without the optimization, whichever side the scenario is on.")
    after: float | None = Field(description="With the optimization.")
    ratio: float | None = Field(description="After ÷ before; null where either is missing, or before is nothing.")
    unit: str
    level: Literal["ceiling", "expected", "exact"]
    better: Literal["lower", "higher", "neither"]


class VariantColumn(BaseModel):
    """A column of the variants."""

    label: str
    unit: str


class VariantRow(BaseModel):
    """One variant; its values stand in the order of the columns."""

    label: str
    values: list[float | None]
    here: bool = Field(description="Whether it is the scenario itself.")
    note: str


class OptimizationVariants(BaseModel):
    """More than two sides."""

    columns: list[VariantColumn]
    rows: list[VariantRow]


class PublishedValue(BaseModel):
    """A number that a published finding states."""

    id: str
    label: str
    value: float
    unit: str
    text: str = Field(description="As the finding’s text writes it.")


class PublishedFinding(BaseModel):
    """What others measured of an optimization."""

    text: str
    values: list[PublishedValue]
    source: str
    url: str | None


class OptimizationAnswer(BaseModel):
    """One optimization as a what-if on the scenario."""

    id: Literal[tuple(spec.id for spec in SPECS)]  # type: ignore[valid-type]  # the registry has the ids
    title: str
    open: bool = Field(description="Whether the scenario uses it.")
    label: str
    change: dict[str, Any] = Field(
        description="Merge patch (RFC 7396) on the scenario: leads to the other side. May be empty."
    )
    sentence: str
    figures: list[OptimizationFigure] = Field(description="Empty where there is nothing to compare.")
    variants: OptimizationVariants | None
    explanations: list[Explanation]
    limits: list[str] = Field(description="What is left out.")
    evidence: list[PublishedFinding]
    refused: str | None = Field(description="Why there is nothing to compare on this scenario.")


class GoodputLoad(BaseModel):
    """The deployment from an idle server to a full one; lists of one length, over requests in the system."""

    concurrency: list[float]
    offered_per_s: list[float]
    good_per_s: list[float]
    attained: list[float] = Field(description="Share of those offered that meets the targets.")
    ttft_s: list[float]
    tpot_s: list[float]


class GoodputAnswer(BaseModel):
    """Requests a second that meet both targets, of the whole deployment."""

    rate_per_s: float
    offered_per_s: float = Field(description="The offered rate that is best for it.")
    attained: float
    concurrency: float = Field(description="Requests in the system there.")
    most_per_s: float = Field(description="What passes with the room full, in time or not.")
    limiter: Literal["ttft", "tpot", "room"]
    sentence: str
    slo_ttft_s: float | None
    slo_tpot_s: float | None
    load: GoodputLoad


class _Answer(BaseModel):
    scenario: Scenario = Field(description="Normalised: every field written out.")
    catalog_version: str
    formula_version: str
    goodput: GoodputAnswer | None = Field(description="Null without a target, or where nothing is expected.")


class OptimizationsAnswer(_Answer):
    """Ten optimizations as what-ifs on one scenario, in the order in which they are shown."""

    optimizations: list[OptimizationAnswer]


class DoorsAnswer(_Answer):
    """The same under its older name."""

    doors: list[OptimizationAnswer]
