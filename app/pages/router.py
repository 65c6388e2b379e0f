"""The HTML face: which routers it is made of."""

from fastapi import APIRouter

from app.pages import live, policy_reports, reference, saved, workbench


def pages_router() -> APIRouter:
    """Every page."""
    router = APIRouter()
    for module in (workbench, saved, live, reference, policy_reports):
        router.include_router(module.router)
    return router
