"""The models of the catalog: the list that a query narrows and orders, and each with all that is worked out of it."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.list_parameters import list_parameters
from app.api.model_document import model_document, model_summary
from app.api.problems import NOT_FOUND, PROBLEMS
from app.web.listing_query import read_listing
from app.web.model_columns import model_columns
from app.web.near_names import near_ids
from app.web.problem import JsonResponse, ProblemError, invalid
from app.web.query import items_of
from app.web.services import ShelfDep

router = APIRouter(tags=["catalog"])
_DOCUMENTED = list_parameters(model_columns(), "name, family, id, repository or a release of the same shape")


@router.get("/models", response_model=dict[str, Any], responses={422: PROBLEMS[422]}, openapi_extra=_DOCUMENTED)
async def models(request: Request, shelf: ShelfDep) -> Response:
    """Every model, in short, or those a query asks for, by the names of the page's address.

    Parameters are counted from the dimensions; what is unknown is null.
    """
    known = shelf.facts.values()
    listing = read_listing(items_of(request.query_params), model_columns(known))
    if listing.refusals:
        raise invalid(listing.refusals)
    rows = [model_summary(facts) for facts in listing.of(known)]
    return JsonResponse({"catalog_version": shelf.catalog.version, "total": len(known), "models": rows})


@router.get("/models/{model_id}", response_model=dict[str, Any], responses=NOT_FOUND)
async def model(model_id: str, shelf: ShelfDep) -> Response:
    """One model: its row, layers in their order, parameters by group and by every convention, cache, bytes, files."""
    facts = shelf.facts.get(model_id)
    if facts is None:
        near = near_ids(model_id, {id_: known.record.name for id_, known in shelf.facts.items()})
        hint = f" Near it: {', '.join(near)}." if near else ""
        raise ProblemError(404, f"There is no such model in the catalog.{hint}")
    return JsonResponse(model_document(facts, shelf))
