"""Every route there is: the pages, the JSON API below /api/v1, and the health checks beside it."""

from fastapi import APIRouter

from app.features.benchmarks import routes as benchmarks
from app.features.catalog import hardware, models
from app.features.compare import routes as compare
from app.features.editors import routes as editors
from app.features.importing import routes as importing
from app.features.launch import routes as launch
from app.features.learn import routes as learn
from app.features.links import api as links_api
from app.features.links import pages as links
from app.features.live import measuring, recorded, stream
from app.features.live import routes as live
from app.features.optimizations import routes as optimizations
from app.features.reference import routes as reference
from app.features.validation import routes as validation
from app.features.workbench import routes as workbench
from app.web.urls import API

# In their order: /models/custom is no model's page.
PAGES = (
    workbench,
    learn,
    optimizations,
    compare,
    launch,
    benchmarks,
    importing,
    editors,
    models,
    hardware,
    validation,
    links,
    live,
    recorded,
    reference,
)
JSON = (
    workbench,
    compare,
    optimizations,
    learn,
    importing,
    launch,
    benchmarks,
    models,
    hardware,
    validation,
    links_api,
    stream,
    recorded,
    measuring,
)


def all_routes() -> APIRouter:
    """The pages and the API in one router."""
    v1 = APIRouter(prefix=API)
    for feature in JSON:
        v1.include_router(feature.api)
    v1.include_router(launch.launching)
    router = APIRouter()
    router.include_router(v1)
    router.include_router(reference.api)
    for feature in PAGES:
        router.include_router(feature.pages)
    return router
