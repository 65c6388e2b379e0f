"""The workbench: inputs left, answer right; a page, the same as a fragment, and the numbers behind its charts."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.answer import answer
from app.charts.gallery import NAMES, chart_named
from app.default_scenario import default_scenario
from app.pages import form
from app.pages.answer_view import BINARY, AnswerView, answer_view
from app.pages.export import csv_of, json_of
from app.pages.presets import presets
from app.pages.saving import saving_context
from app.pages.undo import UNDO, undo_of
from app.refusal import ScenarioError
from app.scenario_query import BY_NAME, unknown_names
from app.web import urls
from app.web.problem import ProblemError
from app.web.query import answer_from, items_of
from app.web.services import CatalogDep, services_of
from app.web.templating import Templates, TemplatesDep, is_fragment

VIEW_NAMES = ("units", UNDO)
router = APIRouter()


@router.get("/", include_in_schema=False)
async def workbench(request: Request, catalog: CatalogDep, templates: TemplatesDep) -> Response:
    """The workbench for the query's scenario; with nothing asked, for the default one."""
    items = items_of(request.query_params)
    binary = request.query_params.get("units") == BINARY
    asked = any(name in BY_NAME for name, _ in items)
    view: AnswerView | None = None
    try:
        answered = answer_from(items, catalog) if asked else answer(default_scenario(), catalog)
    except ScenarioError as error:
        filled = form.refused_form(items, default_scenario(), error)
    else:
        view, filled = answer_view(answered, binary=binary), form.form_of_answer(answered, catalog)
    undo = request.query_params.get(UNDO)
    context: dict[str, Any] = {
        "form": filled,
        "view": view,
        "binary": binary,
        "lists": request.app.state.form_lists,
        "presets": presets(),
        "undo": undo_of(undo, view.items) if view else None,
        "units_href": lambda units: urls.workbench(_in_units(view, units, undo)),
        **saving_context(services_of(request).settings),
        "ignored": unknown_names((name for name, _ in items), VIEW_NAMES),
        "twin": urls.evaluate_api(view.items) if view else None,
    }
    status = 200 if view else 422
    if is_fragment(request):
        return _fragment(request, templates, context, view, status)
    return templates.page("workbench", context, status)


def _in_units(view: AnswerView | None, units: str, undo: str | None) -> list[tuple[str, str]]:
    if view is None:
        return []
    return [*urls.scenario_items(view.answer.scenario, units), *([(UNDO, undo)] if undo else [])]


def _fragment(
    request: Request, templates: Templates, context: Mapping[str, Any], view: AnswerView | None, status: int
) -> Response:
    if view is None:
        return templates.partial("refusal", context, status)
    address = urls.workbench(view.items)
    current = request.headers.get("hx-current-url", "")
    headers = {} if current.endswith(address) else {"HX-Push-Url": address}
    return templates.partial("update", context, status, headers)


@router.get("/export/{chart}.{extension}", include_in_schema=False)
async def export(chart: str, extension: str, request: Request, catalog: CatalogDep) -> Response:
    """The table behind one chart as CSV, or figure and table as JSON."""
    if chart not in NAMES or extension not in ("csv", "json"):
        raise ProblemError(404, "There is no such chart.")
    items = items_of(request.query_params)
    answered = answer_from(items, catalog)
    made = chart_named(chart, answered.evaluation, binary=request.query_params.get("units") == BINARY)
    if made is None:
        raise ProblemError(404, "This scenario has no such chart.")
    return csv_of(made, answered) if extension == "csv" else json_of(made, answered)
