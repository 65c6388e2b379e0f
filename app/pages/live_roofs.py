"""The button that measures this machine's roofs; for the operator."""

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from app.pages.saving import SEE_OTHER
from app.web import urls
from app.web.measuring import begin_measuring
from app.web.services import services_of

router = APIRouter(include_in_schema=False)


@router.post("/live/roofs")
async def measure(request: Request) -> Response:
    """Begin to measure the first card; then the live page, which tells how far it is."""
    await begin_measuring(request, services_of(request))
    return RedirectResponse(f"{urls.live()}#roofs", SEE_OTHER)
