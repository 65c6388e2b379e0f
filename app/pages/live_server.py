"""The server that a person names on the live page: checked, then kept in a cookie of that browser and nowhere else."""

from typing import Final
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from app.pages.live import render
from app.pages.saving import SEE_OTHER, query_of, text_of
from app.web import urls
from app.web.live import COOKIE, LONGEST_ADDRESS
from app.web.problem import ProblemError
from app.web.services import services_of

KEPT_S: Final = 86_400
COOKIE_PATH: Final = "/live"
router = APIRouter(include_in_schema=False)


@router.post("/live/server")
async def name_server(request: Request) -> Response:
    """Keep the address in a cookie, or forget it; then the live page again. What is refused is told at the field."""
    services = services_of(request)
    async with request.form() as form:
        address, forget = text_of(form, "address").strip(), text_of(form, "forget")
        items = query_of(form)
    if forget:
        response = RedirectResponse(urls.live(items), SEE_OTHER)
        response.delete_cookie(COOKIE, path=COOKIE_PATH)
        return response
    try:
        kept = services.typed.validate(address[: LONGEST_ADDRESS + 1])
    except ProblemError as refused:
        told = refused.errors[0].message if refused.errors else refused.detail
        return await render(request, items, refused.status, address=address, address_error=told)
    response = RedirectResponse(f"{urls.live(items)}#live", SEE_OTHER)
    response.set_cookie(
        COOKIE,
        quote(kept, safe=""),
        max_age=KEPT_S,
        path=COOKIE_PATH,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response
