"""The page of the optimizations: each as a what-if on one scenario.

The optimizations by HTTP: each optimization as a what-if on one scenario.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from app.catalog.catalog import Catalog
from app.features.learn.published import Evidence, load_evidence
from app.features.optimizations.schemas import DoorsAnswer, OptimizationsAnswer, optimizations_document
from app.features.optimizations.view import OptimizationsView, optimizations_view
from app.features.services import CatalogDep
from app.features.workbench.answer_view import BINARY
from app.features.workbench.routes import EXAMPLE
from app.features.workbench.schemas import QUERY_PARAMETERS
from app.scenario.answer import Answer, answer
from app.scenario.query import BY_NAME, unknown_names
from app.scenario.refusal import Refusal, ScenarioError
from app.scenario.scenario import Scenario, default_scenario
from app.web import urls
from app.web.openapi import PROBLEMS
from app.web.problem import JsonResponse, StrictRoute
from app.web.query import answer_from, items_of, refuse_unknown
from app.web.templating import Templates

VIEW_NAMES = ("units", "undo")
pages = APIRouter(include_in_schema=False)


@pages.get("/doors")
async def renamed(request: Request) -> Response:
    """The old address of the page; the query stays."""
    query = request.url.query
    return RedirectResponse(f"/optimizations?{query}" if query else "/optimizations", 308)


@pages.get("/optimizations")
async def optimizations_page(request: Request, catalog: CatalogDep) -> Response:
    """The optimizations of the query's scenario; with nothing asked, of the default one."""
    templates: Templates = request.app.state.templates
    items = items_of(request.query_params)
    binary = request.query_params.get("units") == BINARY
    refusals: list[Refusal] = []
    view: OptimizationsView | None = None
    try:
        view = await run_in_threadpool(_view, items, catalog, binary)
    except ScenarioError as error:
        refusals = list(error.refusals)
    context: dict[str, Any] = {
        "view": view,
        "refusals": refusals,
        "ignored": unknown_names((name for name, _ in items), VIEW_NAMES),
        "units_href": lambda units: urls.optimizations(_in_units(view, units)),
        "back": urls.workbench(view.items if view else items),
        "twin": urls.optimizations_api(view.items) if view else None,
    }
    return templates.page("optimizations", context, 200 if view else 422)


def _view(items: urls.Items, catalog: Catalog, binary: bool) -> OptimizationsView:
    asked = any(name in BY_NAME for name, _ in items)
    answered = answer_from(items, catalog) if asked else answer(default_scenario(), catalog)
    return optimizations_view(answered, binary=binary)


def _in_units(view: OptimizationsView | None, units: str) -> list[tuple[str, str]]:
    if view is None:
        return []
    kept = [item for item in view.items if item[0] != "units"]
    return [*kept, *([("units", units)] if units == BINARY else [])]


api = APIRouter(tags=["evaluate"], route_class=StrictRoute)


@api.post("/optimizations", response_model=OptimizationsAnswer, responses=PROBLEMS)
async def optimizations(scenario: Annotated[Scenario, Body(examples=[EXAMPLE])], catalog: CatalogDep) -> Response:
    """Ten optimizations on one scenario, each with its numbers before and after, and the goodput at its targets."""
    return await _response("optimizations", lambda: answer(scenario, catalog))


@api.get("/optimizations", response_model=OptimizationsAnswer, responses=PROBLEMS, openapi_extra=QUERY_PARAMETERS)
async def optimizations_query(request: Request, catalog: CatalogDep) -> Response:
    """The same by the query string of the workbench."""
    return await _of_query("optimizations", request, catalog)


@api.post("/doors", response_model=DoorsAnswer, responses=PROBLEMS)
async def doors(scenario: Annotated[Scenario, Body(examples=[EXAMPLE])], catalog: CatalogDep) -> Response:
    """The older name of /optimizations."""
    return await _response("doors", lambda: answer(scenario, catalog))


@api.get("/doors", response_model=DoorsAnswer, responses=PROBLEMS, openapi_extra=QUERY_PARAMETERS)
async def doors_query(request: Request, catalog: CatalogDep) -> Response:
    """The same by the query string of the workbench."""
    return await _of_query("doors", request, catalog)


async def _of_query(name: str, request: Request, catalog: Catalog) -> Response:
    items = items_of(request.query_params)
    refuse_unknown(items, besides=("units", "undo"))
    return await _response(name, lambda: answer_from(items, catalog))


async def _response(name: str, ask: Callable[[], Answer]) -> Response:
    """The document, its optimizations under `name`; arithmetic is done off the event loop."""

    def document() -> dict[str, Any]:
        evidence = {technique: _plain(found) for technique, found in load_evidence().items()}
        return optimizations_document(ask(), evidence, name)

    return JsonResponse(await run_in_threadpool(document))


def _plain(found: Sequence[Evidence]) -> list[dict[str, Any]]:
    return [
        {
            "text": evidence.text,
            "values": [
                {"id": n.id, "label": n.label, "value": n.value, "unit": n.plain_unit, "text": n.text}
                for n in evidence.numbers
            ],
            "source": evidence.source,
            "url": evidence.url or None,
        }
        for evidence in found
    ]
