"""The wire form of a comparison, for the documentation."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from app.api.schemas import Evaluation


class ComparedPlan(BaseModel):
    """One plan with its whole evaluation."""

    letter: Literal["A", "B", "C", "D"] = Field(description="By its place in the address.")
    name: str = Field(description="The title of a saved link, else what sets the plan apart.")
    href: str = Field(description="The scenario in the workbench, every field written out.")
    saved: str | None = Field(description="Address of the saved link, where the plan is one.")
    evaluation: Evaluation


class FieldDifference(BaseModel):
    """A field of the normalised scenarios in which they are not all alike."""

    path: str = Field(description="Dotted path into the scenario.")
    label: str
    values: list[Any] = Field(description="One for each plan, null where it is not set.")


class ComparedValue(BaseModel):
    """A number with the interval that is claimed for it; null where there is none."""

    mid: float | None
    low: float | None
    high: float | None


class ComparedRow(BaseModel):
    """One quantity of every plan, at one level. Lists are in the order of the plans."""

    id: str
    label: str
    scope: str
    unit: str
    level: Literal["expected", "ceiling", "capacity", "input"]
    better: Literal["higher", "lower", "neither"]
    equal: bool = Field(description="Whether all plans have the same number.")
    values: list[ComparedValue]
    ratios: list[float | None] = Field(description="Value ÷ the baseline's.")
    verdicts: list[Literal["baseline", "same", "better", "worse", "different", "unknown"]]
    best: list[int] = Field(description="Places of the best plans, from 1; one that does not fit is never among them.")


class ComparisonAnswer(BaseModel):
    """Up to four plans side by side."""

    baseline: int = Field(description="Place of the plan that the others are measured against, from 1.")
    plans: list[ComparedPlan]
    differences: list[FieldDifference]
    results: list[ComparedRow]
    equal_requests: bool = Field(description="Whether all plans serve the same requests.")


COMPARE_PARAMETERS: dict[str, Any] = {
    "parameters": [
        {
            "name": "s",
            "in": "query",
            "required": True,
            "description": "A plan: the query string of a workbench page, its address, or a saved link by address or "
            "slug. Given up to four times; it is parsed, never fetched.",
            "schema": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 4},
        },
        {
            "name": "base",
            "in": "query",
            "required": False,
            "description": "Place of the baseline among the plans, from 1.",
            "schema": {"type": "integer", "minimum": 1, "maximum": 4, "default": 1},
        },
        {
            "name": "equal",
            "in": "query",
            "required": False,
            "description": "`hide` hides rows that are equal on the page; here it changes nothing.",
            "schema": {"type": "string", "enum": ["show", "hide"], "default": "show"},
        },
    ]
}
