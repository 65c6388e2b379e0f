"""The answer to a list that the address narrows and orders: a page, or the parts of it that a change replaces."""

from collections.abc import Callable
from typing import Any

from fastapi import Request
from starlette.responses import Response

from app.web.listing import Listing
from app.web.templating import is_fragment, templates_of

Address = Callable[..., str]


def listed(
    request: Request, listing: Listing[Any], address: Address, page: tuple[str, str], context: dict[str, Any]
) -> Response:
    """The list as a page, or as a fragment that takes the address bar along; 422 where the query is refused.

    Args:
        request: which of the two is asked for.
        listing: the query as it was read.
        address: makes the address of a list from query items.
        page: the page's template, and that of the fragment.
        context: what both show.
    """
    templates = templates_of(request)
    status = 422 if listing.refusals else 200
    if not is_fragment(request):
        return templates.page(page[0], context, status)
    if listing.refusals:
        return templates.partial("list_refusal", context, status)
    # The form already shows the order that it asked for; a heading of the table cannot set it but so.
    context["orders_oob"] = not request.headers.get("hx-source", "").startswith("form")
    here = address(listing.items)
    headers = {} if request.headers.get("hx-current-url", "").endswith(here) else {"HX-Push-Url": here}
    return templates.partial(page[1], context, status, headers)
