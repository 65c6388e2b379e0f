"""The models: a list that the address narrows and orders, and a page for each."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.pages.listing import listed
from app.pages.model_rows import model_rows, shown
from app.pages.model_view import model_view
from app.web import urls
from app.web.listing_query import read_listing
from app.web.model_columns import model_columns
from app.web.near_names import near_ids
from app.web.query import items_of
from app.web.services import ShelfDep
from app.web.templating import TemplatesDep

router = APIRouter(include_in_schema=False)


@router.get("/models")
async def models(request: Request, shelf: ShelfDep) -> Response:
    """The models that the query asks for; every one where it asks for nothing."""
    known = shelf.facts.values()
    listing = read_listing(items_of(request.query_params), model_columns(known))
    columns = shown(listing.columns)
    context: dict[str, Any] = {
        "form": listing,
        "columns": columns,
        "rows": model_rows([] if listing.refusals else listing.of(known), columns),
        "total": len(known),
        "address": urls.models,
        "twin": None if listing.refusals else urls.models_api(listing.items),
    }
    return listed(request, listing, urls.models, ("models", "model_update"), context)


@router.get("/models/{model_id}")
async def model(model_id: str, shelf: ShelfDep, templates: TemplatesDep) -> Response:
    """Everything the catalog knows of one model; for an id that is not there, what may have been meant."""
    facts = shelf.facts.get(model_id)
    if facts is None:
        near = near_ids(model_id, {id_: known.record.name for id_, known in shelf.facts.items()})
        return templates.page("no_model", {"near": [shelf.facts[id_].record for id_ in near]}, 404)
    return templates.page("model", {"view": model_view(facts, shelf), "twin": urls.model_api(model_id)})
