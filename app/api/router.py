"""The JSON face, version 1: which routers it is made of."""

from fastapi import APIRouter

from app.api import catalog, configurations, evaluate, health, probes, sweep
from app.settings import Settings
from app.web.urls import API


def api_router(settings: Settings) -> APIRouter:
    """Every route below /api/v1, and the health checks beside it."""
    v1 = APIRouter(prefix=API)
    v1.include_router(evaluate.router)
    v1.include_router(evaluate.batch_router, max_body_size=settings.max_batch_body_bytes)
    for module in (sweep, catalog, configurations, probes):
        v1.include_router(module.router)
    root = APIRouter()
    root.include_router(v1)
    root.include_router(health.router)
    return root
