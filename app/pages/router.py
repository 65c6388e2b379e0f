"""The HTML face: which routers it is made of."""

from fastapi import APIRouter

from app.pages import (
    accelerator_editor,
    bench,
    bench_kept,
    compare,
    editor,
    hardware,
    importing,
    launching,
    learn,
    live,
    live_recorded,
    live_roofs,
    live_server,
    live_snapshots,
    models,
    optimizations,
    pasting,
    policy_reports,
    production,
    reference,
    saved,
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
    bench_kept,
    importing,
    editor,
    accelerator_editor,
    models,
    hardware,
    validation,
    saved,
    live,
    live_recorded,
    live_roofs,
    live_server,
    live_snapshots,
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
