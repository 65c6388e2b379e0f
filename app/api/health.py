"""Is the process up, and does the store work."""

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from app.store.health import ready as store_ready
from app.web.json_route import JsonResponse
from app.web.services import ServicesDep

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """Answer of the health checks."""

    status: str
    reason: str | None = None


@router.get("/healthz", response_model=Health)
async def healthz() -> Response:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@router.get("/readyz", response_model=Health, responses={503: {"model": Health}})
def readyz(services: ServicesDep) -> Response:
    """A write and a read reach the disk, in a transaction that is rolled back."""
    if services.engine is None:
        return JsonResponse({"status": "unavailable", "reason": services.store_fault}, status_code=503)
    state = store_ready(services.engine)
    if not state.ready:
        return JsonResponse({"status": "unavailable", "reason": state.reason}, status_code=503)
    return JsonResponse({"status": "ok"})
