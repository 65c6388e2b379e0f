"""The JSON face, version 1: which routers it is made of."""

from fastapi import APIRouter

from app.api import (
    bench,
    catalog,
    compare,
    evaluate,
    hardware,
    health,
    importing,
    learn,
    links,
    models,
    optimizations,
    pasting,
    probes,
    recording,
    roofs,
    sweep,
    validation,
)
from app.web.urls import API

MODULES = (
    evaluate,
    compare,
    optimizations,
    learn,
    sweep,
    importing,
    pasting,
    bench,
    models,
    hardware,
    catalog,
    validation,
    links,
    probes,
    recording,
    roofs,
)


def api_router() -> APIRouter:
    """Every route below /api/v1, and the health checks beside it."""
    v1 = APIRouter(prefix=API)
    for module in MODULES:
        v1.include_router(module.router)
    v1.include_router(pasting.launching)
    root = APIRouter()
    root.include_router(v1)
    root.include_router(health.router)
    return root
