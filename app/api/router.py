"""The JSON face, version 1: which routers it is made of."""

from fastapi import APIRouter

from app.api import (
    catalog,
    configurations,
    evaluate,
    hardware,
    health,
    importing,
    models,
    pasting,
    probes,
    sweep,
    validation,
)
from app.web.urls import API


def api_router() -> APIRouter:
    """Every route below /api/v1, and the health checks beside it."""
    v1 = APIRouter(prefix=API)
    for module in (evaluate, sweep, importing, pasting, models, hardware, catalog, validation, configurations, probes):
        v1.include_router(module.router)
    v1.include_router(pasting.launching)
    root = APIRouter()
    root.include_router(v1)
    root.include_router(health.router)
    return root
