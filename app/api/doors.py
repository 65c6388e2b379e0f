"""The doors by HTTP: each optimization as a what-if on one scenario."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.answer import Answer, answer
from app.api import schemas
from app.api.doors_schema import DoorsAnswer
from app.api.evaluate import EXAMPLE
from app.api.problems import PROBLEMS
from app.catalog.catalog import Catalog
from app.doors_document import doors_document
from app.learn.evidence import Evidence, load_evidence
from app.scenario import Scenario
from app.web.problem import JsonResponse, StrictRoute
from app.web.query import answer_from, items_of, refuse_unknown
from app.web.services import CatalogDep

router = APIRouter(tags=["evaluate"], route_class=StrictRoute)


@router.post("/doors", response_model=DoorsAnswer, responses=PROBLEMS)
async def doors(scenario: Annotated[Scenario, Body(examples=[EXAMPLE])], catalog: CatalogDep) -> Response:
    """Ten optimizations on one scenario, each with its numbers before and after, and the goodput at its targets."""
    return JsonResponse(await run_in_threadpool(_of_scenario, scenario, catalog))


@router.get("/doors", response_model=DoorsAnswer, responses=PROBLEMS, openapi_extra=schemas.QUERY_PARAMETERS)
async def doors_query(request: Request, catalog: CatalogDep) -> Response:
    """The same by the query string of the workbench."""
    items = items_of(request.query_params)
    refuse_unknown(items, besides=("units", "undo"))
    return JsonResponse(await run_in_threadpool(_told, answer_from(items, catalog)))


def _of_scenario(scenario: Scenario, catalog: Catalog) -> dict[str, Any]:
    return _told(answer(scenario, catalog))


def _told(answered: Answer) -> dict[str, Any]:
    return doors_document(answered, {door: _plain(found) for door, found in load_evidence().items()})


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
