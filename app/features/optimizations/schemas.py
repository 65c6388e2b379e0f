"""The wire form of the optimizations, for the documentation: what `app.features.optimizations.schemas` writes.

The optimizations of a scenario as the JSON document that clients rely on: key by key, so renaming renames no key.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from app.calc.optimize.optimization import Optimization
from app.calc.optimize.registry import SPECS
from app.calc.time.goodput import LIMIT_WORDS, Goodput
from app.features.workbench.schemas import Explanation
from app.scenario.answer import Answer
from app.scenario.document import explanation_document, goodput_document
from app.scenario.scenario import Scenario


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


Found = Mapping[str, Sequence[Mapping[str, Any]]]


def optimizations_document(answered: Answer, evidence: Found, name: str = "doors") -> dict[str, Any]:
    """Every optimization in plain types, SI units, `null` where nothing is known.

    Args:
        answered: the answer of the scenario.
        evidence: what was published of each optimization, in plain types.
        name: the key that they stand under.
    """
    evaluation = answered.evaluation
    return {
        "scenario": answered.scenario.document(),
        "catalog_version": answered.catalog_version,
        "formula_version": answered.formula_version,
        "goodput": None if evaluation.goodput is None else _goodput(evaluation.goodput),
        name: [_optimization(found, evidence.get(found.id, ())) for found in evaluation.optimizations],
    }


def _optimization(found: Optimization, evidence: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    variants = found.variants
    return {
        "id": found.id,
        "title": found.spec.title,
        "open": found.is_used,
        "label": found.label,
        "change": dict(found.change),
        "sentence": found.sentence,
        "figures": [
            {
                "label": figure.of.label,
                "before": figure.before,
                "after": figure.after,
                "ratio": figure.ratio,
                "unit": figure.of.unit,
                "level": figure.level.value,
                "better": figure.of.better.value,
            }
            for figure in found.figures
        ],
        "variants": variants
        and {
            "columns": [{"label": column.label, "unit": column.unit} for column in variants.columns],
            "rows": [
                {"label": row.label, "values": list(row.values), "here": row.is_here, "note": row.note}
                for row in variants.rows
            ],
        },
        "explanations": [explanation_document(explanation) for explanation in found.explanations],
        "limits": list(found.limits),
        "evidence": [dict(one) for one in evidence],
        "refused": found.refused,
    }


def _goodput(found: Goodput) -> dict[str, Any]:
    load = found.load
    return goodput_document(found) | {
        "sentence": LIMIT_WORDS[found.limiter],
        "slo_ttft_s": found.ttft_target_s,
        "slo_tpot_s": found.tpot_target_s,
        "load": {
            "concurrency": load.concurrency.tolist(),
            "offered_per_s": load.rate_per_s.tolist(),
            "good_per_s": load.good_per_s.tolist(),
            "attained": load.attained.tolist(),
            "ttft_s": load.ttft_s.tolist(),
            "tpot_s": load.tpot_s.tolist(),
        },
    }
