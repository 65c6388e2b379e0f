"""The optimizations by HTTP: each optimization as a what-if on one scenario."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.answer import Answer, answer
from app.api.evaluate import EXAMPLE
from app.api.optimizations_schema import DoorsAnswer, OptimizationsAnswer
from app.api.problems import PROBLEMS
from app.api.schemas import QUERY_PARAMETERS
from app.catalog.catalog import Catalog
from app.learn.evidence import Evidence, load_evidence
from app.optimizations_document import optimizations_document
from app.scenario import Scenario
from app.web.problem import JsonResponse, StrictRoute
from app.web.query import answer_from, items_of, refuse_unknown
from app.web.services import CatalogDep

router = APIRouter(tags=["evaluate"], route_class=StrictRoute)


@router.post("/optimizations", response_model=OptimizationsAnswer, responses=PROBLEMS)
async def optimizations(scenario: Annotated[Scenario, Body(examples=[EXAMPLE])], catalog: CatalogDep) -> Response:
    """Ten optimizations on one scenario, each with its numbers before and after, and the goodput at its targets."""
    return await _response("optimizations", lambda: answer(scenario, catalog))


@router.get("/optimizations", response_model=OptimizationsAnswer, responses=PROBLEMS, openapi_extra=QUERY_PARAMETERS)
async def optimizations_query(request: Request, catalog: CatalogDep) -> Response:
    """The same by the query string of the workbench."""
    return await _of_query("optimizations", request, catalog)


@router.post("/doors", response_model=DoorsAnswer, responses=PROBLEMS)
async def doors(scenario: Annotated[Scenario, Body(examples=[EXAMPLE])], catalog: CatalogDep) -> Response:
    """The older name of /optimizations."""
    return await _response("doors", lambda: answer(scenario, catalog))


@router.get("/doors", response_model=DoorsAnswer, responses=PROBLEMS, openapi_extra=QUERY_PARAMETERS)
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
