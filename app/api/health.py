"""Is the process up, and does the store work."""

import logging

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from app.store.schema import ready as store_ready
from app.web.problem import JsonResponse
from app.web.services import ServicesDep

logger = logging.getLogger("tokenroof.health")
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
    fault = services.store_fault
    if services.engine is not None:
        state = store_ready(services.engine)
        fault = state.reason if not state.ready else None
    if fault is None:
        return JsonResponse({"status": "ok"})
    logger.error("not ready: %s", fault)  # the reason names paths of the machine, which are the operator's
    return JsonResponse({"status": "unavailable", "reason": "The database cannot be used; see the log."}, 503)
