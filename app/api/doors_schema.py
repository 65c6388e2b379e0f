"""The wire form of the doors, for the documentation: what `app.doors_document` writes."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from app.api.schemas import Explanation
from app.scenario import Scenario


class DoorFigure(BaseModel):
    """One number without the optimization and with it, in SI units; null where it is not told of that side."""

    label: str
    before: float | None = Field(description="With the door closed, whichever side the scenario is on.")
    after: float | None = Field(description="With the door open.")
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


class DoorVariants(BaseModel):
    """A door of more than two sides."""

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


class DoorAnswer(BaseModel):
    """One optimization as a what-if on the scenario."""

    id: Literal[
        "quantization",
        "attention",
        "paging",
        "batching",
        "prefix_caching",
        "chunked_prefill",
        "speculative",
        "disaggregation",
        "parallelism",
        "newer_card",
    ]
    title: str
    open: bool = Field(description="Whether the scenario uses it.")
    label: str
    change: dict[str, Any] = Field(
        description="Merge patch (RFC 7396) on the scenario: opens the door, or closes an open one. May be empty."
    )
    sentence: str
    figures: list[DoorFigure] = Field(description="Empty where the door is refused.")
    variants: DoorVariants | None
    explanations: list[Explanation]
    limits: list[str] = Field(description="What is not told.")
    evidence: list[PublishedFinding]
    refused: str | None = Field(description="Why the door is not told of this scenario.")


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


class DoorsAnswer(BaseModel):
    """Ten optimizations as what-ifs on one scenario, in the order in which they are told."""

    scenario: Scenario = Field(description="Normalised: every field written out.")
    catalog_version: str
    formula_version: str
    goodput: GoodputAnswer | None = Field(description="Null without a target, or where nothing is expected.")
    doors: list[DoorAnswer]
