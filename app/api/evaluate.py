"""Scenario in, Evaluation out: one, the same by query string, and a batch."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.answer import answer
from app.api import schemas
from app.api.problems import PROBLEMS
from app.catalog.catalog import Catalog
from app.document import document
from app.refusal import ScenarioError
from app.scenario import Scenario
from app.web.problem import JsonResponse, StrictRoute, invalid, refusals_of
from app.web.query import answer_from, items_of, refuse_unknown
from app.web.services import CatalogDep

router = APIRouter(tags=["evaluate"], route_class=StrictRoute)

EXAMPLE = {
    "model": {"id": "llama-3.1-8b"},
    "hardware": {"id": "h100-sxm-80gb"},
    "workload": {"prompt_tokens": 1000, "output_tokens": 500, "concurrency": 1},
}


@router.post("/evaluate", response_model=schemas.Evaluation, responses=PROBLEMS)
async def evaluate(scenario: Annotated[Scenario, Body(examples=[EXAMPLE])], catalog: CatalogDep) -> Response:
    """Every number of one scenario, each with its derivation. A scenario that does not fit is a normal answer."""
    return JsonResponse(document(answer(scenario, catalog)))


@router.get("/evaluate", response_model=schemas.Evaluation, responses=PROBLEMS, openapi_extra=schemas.QUERY_PARAMETERS)
async def evaluate_query(request: Request, catalog: CatalogDep) -> Response:
    """The same by the query string of the workbench: put a page's query behind this address to get its numbers."""
    items = items_of(request.query_params)
    refuse_unknown(items, besides=("units", "undo"))
    return JsonResponse(document(answer_from(items, catalog)))


@router.post("/evaluate/batch", response_model=schemas.Batch, responses=PROBLEMS)
async def evaluate_batch(batch: schemas.BatchRequest, catalog: CatalogDep) -> Response:
    """Up to 1,000 scenarios, answered in their order; one that is not right gets its own problem."""
    results = await run_in_threadpool(lambda: [_one(raw, catalog) for raw in batch.scenarios])
    return JsonResponse({"results": results})


def _one(raw: dict[str, Any], catalog: Catalog) -> dict[str, Any]:
    try:
        return {"evaluation": document(answer(Scenario.model_validate(raw), catalog))}
    except (ValidationError, ScenarioError) as error:
        return {"problem": invalid(refusals_of(error)).document()}
