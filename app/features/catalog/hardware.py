"""The accelerators: a list that the address narrows and orders, and a page for each.

The accelerators of the catalog: the list that a query narrows and orders, and each with all its facts.

The engines of the catalog; models and accelerators have modules of their own.
"""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.catalog.accelerators import AcceleratorRecord
from app.features.catalog.hardware_rows import accelerator_rows, hardware_columns, ridges, shown
from app.features.catalog.hardware_view import accelerator_view, held_models
from app.features.catalog.models import plain_facts
from app.features.services import CatalogDep, ShelfDep
from app.web import urls
from app.web.listing import listed
from app.web.listing_query import list_parameters, read_listing
from app.web.openapi import NOT_FOUND, PROBLEMS
from app.web.problem import JsonResponse, ProblemError, invalid, near_ids
from app.web.query import items_of
from app.web.templating import TemplatesDep

pages = APIRouter(include_in_schema=False)


@pages.get("/hardware")
async def hardware_page(request: Request, catalog: CatalogDep) -> Response:
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


@pages.get("/hardware/{hardware_id}")
async def accelerator_page(hardware_id: str, catalog: CatalogDep, shelf: ShelfDep, templates: TemplatesDep) -> Response:
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


api = APIRouter(tags=["catalog"])
_DOCUMENTED = list_parameters(hardware_columns(), "name, maker, architecture or id")


@api.get("/hardware", response_model=dict[str, Any], responses={422: PROBLEMS[422]}, openapi_extra=_DOCUMENTED)
async def hardware(request: Request, catalog: CatalogDep) -> Response:
    """Every accelerator, in short, or those a query asks for, by the names of the page's address.

    Rates are dense; memory as marketed and as the driver reports it; links one-way; what is unknown is null.
    """
    records = catalog.accelerators.values()
    listing = read_listing(items_of(request.query_params), hardware_columns(records))
    if listing.refusals:
        raise invalid(listing.refusals)
    rows = [_summary(record) for record in listing.of(records)]
    return JsonResponse({"catalog_version": catalog.version, "total": len(records), "hardware": rows})


@api.get("/hardware/{hardware_id}", response_model=dict[str, Any], responses=NOT_FOUND)
async def accelerator(hardware_id: str, catalog: CatalogDep) -> Response:
    """One accelerator: every fact with sources, caveats and the disagreements between sources."""
    record = catalog.accelerators.get(hardware_id)
    if record is None:
        near = near_ids(hardware_id, {id_: known.name for id_, known in catalog.accelerators.items()})
        hint = f" Near it: {', '.join(near)}." if near else ""
        raise ProblemError(404, f"There is no such accelerator in the catalog.{hint}")
    return JsonResponse(plain_facts(record) | _summary(record))


def _summary(record: AcceleratorRecord) -> dict[str, Any]:
    device = record.accelerator
    return {
        "id": record.id,
        "name": record.name,
        "vendor": record.vendor,
        "architecture": record.architecture,
        "kind": record.kind.value,
        "year": record.year,
        "memory_marketed_bytes": device.memory_marketed_bytes,
        "memory_reported_bytes": device.memory_reported_bytes,
        "bandwidth_bytes_per_s": device.bandwidth_bytes_per_s,
        "peak_flops_per_s": {dtype.value: rate for dtype, rate in device.peak_flops_per_s.items()},
        "ridge_flops_per_byte": {dtype.value: ridge for dtype, ridge in ridges(record).items()},
        "link_bytes_per_s_one_way": device.link_bytes_per_s_one_way,
        "tdp_w": device.tdp_w,
        "price_usd_per_hour": device.price_usd_per_hour,
        "confidence": record.confidence.value,
    }


@api.get("/engines", response_model=dict[str, Any])
async def engines(catalog: CatalogDep) -> Response:
    """The engines a scenario can name, and what their memory setting means."""
    return JsonResponse({"engines": [plain_facts(engine) for engine in catalog.engines.values()]})
