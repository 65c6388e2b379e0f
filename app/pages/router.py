"""The HTML face: which routers it is made of."""

from fastapi import APIRouter

from app.pages import (
    accelerator_editor,
    compare,
    doors,
    editor,
    hardware,
    importing,
    launching,
    learn,
    live,
    models,
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
    doors,
    compare,
    launching,
    pasting,
    importing,
    editor,
    accelerator_editor,
    models,
    hardware,
    validation,
    saved,
    live,
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
