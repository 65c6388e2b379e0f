"""The accelerators of the catalog: the list that a query narrows and orders, and each with all its facts."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.facts import facts
from app.api.list_parameters import list_parameters
from app.api.problems import NOT_FOUND, PROBLEMS
from app.catalog.accelerators import AcceleratorRecord
from app.web.hardware_columns import hardware_columns, ridges
from app.web.listing_query import read_listing
from app.web.near_names import near_ids
from app.web.problem import JsonResponse, ProblemError, invalid
from app.web.query import items_of
from app.web.services import CatalogDep

router = APIRouter(tags=["catalog"])
_DOCUMENTED = list_parameters(hardware_columns(), "name, maker, architecture or id")


@router.get("/hardware", response_model=dict[str, Any], responses={422: PROBLEMS[422]}, openapi_extra=_DOCUMENTED)
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


@router.get("/hardware/{hardware_id}", response_model=dict[str, Any], responses=NOT_FOUND)
async def accelerator(hardware_id: str, catalog: CatalogDep) -> Response:
    """One accelerator: every fact with sources, caveats and the disagreements between sources."""
    record = catalog.accelerators.get(hardware_id)
    if record is None:
        near = near_ids(hardware_id, {id_: known.name for id_, known in catalog.accelerators.items()})
        hint = f" Near it: {', '.join(near)}." if near else ""
        raise ProblemError(404, f"There is no such accelerator in the catalog.{hint}")
    return JsonResponse(facts(record) | _summary(record))


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
