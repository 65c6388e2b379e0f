"""The HTML face: which routers it is made of."""

from fastapi import APIRouter

from app.pages import (
    accelerator_editor,
    bench,
    compare,
    editor,
    hardware,
    importing,
    launching,
    learn,
    links,
    live,
    live_recorded,
    live_roofs,
    live_server,
    models,
    optimizations,
    pasting,
    policy_reports,
    production,
    reference,
    validation,
    workbench,
)

# In their order: /models/custom is no model's page.
MODULES = (
    workbench,
    learn,
    optimizations,
    compare,
    launching,
    pasting,
    bench,
    importing,
    editor,
    accelerator_editor,
    models,
    hardware,
    validation,
    links,
    live,
    live_recorded,
    live_roofs,
    live_server,
    production,
    reference,
    policy_reports,
)


def pages_router() -> APIRouter:
    """Every page."""
    router = APIRouter()
    for module in MODULES:
        router.include_router(module.router)
    return router
