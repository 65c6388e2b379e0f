"""The accelerators: a list that the address narrows and orders, and a page for each."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.pages.hardware_holds import held_models
from app.pages.hardware_rows import accelerator_rows, shown
from app.pages.hardware_view import accelerator_view
from app.pages.listing import listed
from app.web import urls
from app.web.hardware_columns import hardware_columns
from app.web.listing_query import read_listing
from app.web.near_names import near_ids
from app.web.query import items_of
from app.web.services import CatalogDep, ShelfDep
from app.web.templating import TemplatesDep

router = APIRouter(include_in_schema=False)


@router.get("/hardware")
async def hardware(request: Request, catalog: CatalogDep) -> Response:
    """The accelerators that the query asks for; every one where it asks for nothing."""
    records = catalog.accelerators.values()
    listing = read_listing(items_of(request.query_params), hardware_columns(records))
    found = [] if listing.refusals else listing.of(records)
    columns = shown(listing.columns)
    context: dict[str, Any] = {
        "form": listing,
        "columns": columns,
        "rows": accelerator_rows(found, columns),
        "total": len(records),
        "address": urls.hardware,
        "twin": None if listing.refusals else urls.hardware_api(listing.items),
    }
    return listed(request, listing, urls.hardware, ("hardware", "hardware_update"), context)


@router.get("/hardware/{hardware_id}")
async def accelerator(hardware_id: str, catalog: CatalogDep, shelf: ShelfDep, templates: TemplatesDep) -> Response:
    """Everything the catalog knows of one accelerator; for an id that is not there, what may have been meant."""
    record = catalog.accelerators.get(hardware_id)
    if record is None:
        near = near_ids(hardware_id, {id_: known.name for id_, known in catalog.accelerators.items()})
        return templates.page("no_accelerator", {"near": [catalog.accelerators[id_] for id_ in near]}, 404)
    context: dict[str, Any] = {
        "view": accelerator_view(record, catalog.version),
        "holds": held_models(record.accelerator, shelf),
        "twin": urls.accelerator_api(record.id),
    }
    return templates.page("accelerator", context)
