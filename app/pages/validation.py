"""Predicted against measured: errors, charts and every measurement, as the address narrows and orders them."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.pages.listing import listed
from app.pages.validation_rows import residuals, shown
from app.pages.validation_view import validation_view
from app.web import urls
from app.web.listing_query import read_listing
from app.web.query import items_of
from app.web.services import ValidationDep
from app.web.validation_columns import ROWS_A_PAGE, validation_columns

router = APIRouter(include_in_schema=False)


@router.get("/validation")
def validation(request: Request, sheet: ValidationDep) -> Response:
    """The measurements that the query asks for. Not a coroutine: the first request predicts them all, on a thread."""
    listing = read_listing(items_of(request.query_params), validation_columns(sheet.rows), ROWS_A_PAGE)
    found = [] if listing.refusals else listing.of(sheet.rows)
    columns = shown(listing.columns)
    context: dict[str, Any] = {
        "form": listing,
        "columns": columns,
        "found": found,
        "rows": residuals(listing.on_page(found), columns),
        "view": validation_view(found, listing, sheet),
        "total": len(sheet.rows),
        "address": urls.validation,
        "twin": None if listing.refusals else urls.validation_api(listing.items),
    }
    return listed(request, listing, urls.validation, ("validation", "validation_update"), context)
