"""The HTML face: which routers it is made of."""

from fastapi import APIRouter

from app.pages import (
    accelerator_editor,
    editor,
    hardware,
    importing,
    launching,
    live,
    models,
    pasting,
    policy_reports,
    reference,
    saved,
    validation,
    workbench,
)

# In their order: /models/custom is no model's page.
MODULES = (
    workbench,
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
    reference,
    policy_reports,
)


def pages_router() -> APIRouter:
    """Every page."""
    router = APIRouter()
    for module in MODULES:
        router.include_router(module.router)
    return router
