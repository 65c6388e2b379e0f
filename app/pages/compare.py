"""Plans side by side: a page that its address reproduces, and the numbers behind its charts."""

from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.charts.compare.gallery import COMPARED
from app.compare.plans import BINARY, Comparison, read_comparison
from app.pages.answer_view import subject
from app.pages.compare_start import compare_form, ready_comparisons
from app.pages.compare_view import compare_view
from app.pages.export import table_csv, table_json
from app.store.links import Saved
from app.web import urls
from app.web.links import PRIVATE, living
from app.web.problem import ProblemError, invalid
from app.web.query import items_of
from app.web.services import Services, services_of
from app.web.templating import TemplatesDep

router = APIRouter(include_in_schema=False)


@router.get("/compare")
def compare(request: Request, templates: TemplatesDep) -> Response:
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


@router.get("/compare/{chart}.{extension}")
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
