"""The wire form of a comparison, for the documentation.

Plans side by side: a page that its address reproduces, and the numbers behind its charts.

Scenarios side by side: their evaluations, what differs in the inputs, and the results in rows.
"""

from functools import partial
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from app.features.compare.charts.gallery import COMPARED
from app.features.compare.plans import BINARY, Comparison, read_comparison
from app.features.compare.results import comparison_document
from app.features.compare.start import compare_form, ready_comparisons
from app.features.compare.view import compare_view
from app.features.links.links import PRIVATE, living
from app.features.services import Services, ServicesDep, services_of
from app.features.workbench.answer_view import subject
from app.features.workbench.export import table_csv, table_json
from app.features.workbench.schemas import Evaluation
from app.scenario.refusal import Refusal
from app.store.links import Saved
from app.web import urls
from app.web.openapi import PROBLEMS
from app.web.problem import JsonResponse, ProblemError, invalid
from app.web.query import items_of
from app.web.templating import TemplatesDep


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


pages = APIRouter(include_in_schema=False)


@pages.get("/compare")
def compare_page(request: Request, templates: TemplatesDep) -> Response:
    """The plans of the query; with nothing asked, comparisons to begin with. Not a coroutine: it reads saved links."""
    services = services_of(request)
    found = _asked(request, services)
    view = compare_view(found, services.catalog) if found.plans else None
    is_private = any(plan.slug for plan in found.plans)
    texts = [plan.text for plan in found.plans]
    context: dict[str, Any] = {
        "asked": found,
        "form": compare_form(found),
        "view": view,
        "ready": () if view else ready_comparisons(services.catalog),
        "units": BINARY if found.binary else "gb",
        "twin": urls.compare_api(texts, found.base + 1) if view and not found.refusals else None,
        "is_private": is_private,
        "absolute": urls.absolute(request, services.settings, view.address) if view else "",
    }
    return templates.page("compare", context, 422 if found.refusals else 200, PRIVATE if is_private else None)


@pages.get("/compare/{chart}.{extension}")
def export(chart: str, extension: str, request: Request) -> Response:
    """The table behind one chart of a comparison as CSV, or figure and table as JSON."""
    if chart not in COMPARED or extension not in ("csv", "json"):
        raise ProblemError(404, "There is no such chart.")
    found = _asked(request, services_of(request))
    if found.refusals or not found.plans:
        raise invalid(found.refusals)
    made = COMPARED[chart](found.plans, found.base, binary=found.binary)
    versions = f"formulas {found.baseline.answer.formula_version}, catalog {found.baseline.answer.catalog_version}"
    if extension == "json":
        scenarios = [{"name": plan.label, "scenario": plan.answer.scenario.document()} for plan in found.plans]
        return table_json(made, {"plans": scenarios, "versions": versions})
    lines = [f"{plan.label}: {subject(plan.answer)}" for plan in found.plans]
    return table_csv(made, (f"Tokenroof: {made.title}", *lines, made.summary, versions))


def _asked(request: Request, services: Services) -> Comparison:
    return read_comparison(items_of(request.query_params), services.catalog, partial(_living, services))


def _living(services: Services, slug: str) -> Saved:
    return living(services.links("configuration"), slug)


api = APIRouter(tags=["evaluate"])


@api.get(
    "/compare",
    response_model=ComparisonAnswer,
    responses={422: PROBLEMS[422]},
    openapi_extra=COMPARE_PARAMETERS,
)
def compare(request: Request, services: ServicesDep) -> Response:
    """Up to four scenarios or saved links side by side, as the page of the same query shows them.

    A refusal names the plan and the field: `s.0.hardware.id`.
    """
    found = read_comparison(items_of(request.query_params), services.catalog, partial(_living, services))
    refusals = [*found.refusals, *(Refusal(name[:60], "There is no such query parameter.") for name in found.unknown)]
    for plan in found.plans:
        refusals += [Refusal(f"s.{plan.position}.{n[:60]}", "There is no such query parameter.") for n in plan.ignored]
    if not found.plans and not refusals:
        refusals.append(Refusal("s", "This field is needed: a scenario or a saved link for each plan."))
    if refusals:
        raise invalid(refusals)
    headers = PRIVATE if any(plan.slug for plan in found.plans) else None
    return JsonResponse(comparison_document(found), headers=headers)
