"""The application: wiring only."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

from app.catalog.catalog import Catalog, load_catalog
from app.catalog.facts import ModelShelf
from app.features.editors.reading import samples_of
from app.features.importing.hub import Hub
from app.features.links.links import KINDS
from app.features.live.routes import LiveFeed
from app.features.live.servers import server_probes
from app.features.live.stream import LiveBoards
from app.features.live.typed_servers import TypedServers
from app.features.routing import all_routes
from app.features.services import Services
from app.features.validation.errors import ValidationSheet
from app.features.workbench.form import form_lists
from app.machine.peaks.measure import Rig
from app.machine.peaks.result import RoofStore
from app.machine.peaks.service import Bench
from app.machine.probes.amd import AmdProbe
from app.machine.probes.host import HostProbe
from app.machine.probes.nvidia import NvidiaProbe
from app.machine.probes.sampler import Sampler
from app.machine.probes.snapshot import Probe
from app.machine.recording.recorder import Recorder
from app.settings import Settings
from app.store.database import create_store_engine
from app.store.errors import StoreError
from app.store.links import Links
from app.store.schema import migrate
from app.web.assets import MOUNT_PATH, AssetFiles, Assets
from app.web.errors import ErrorPages
from app.web.middleware import BodyLimit, Doorkeeper, HeadAsGet, RequestLog, SecurityHeaders
from app.web.openapi import install_openapi
from app.web.templating import Templates
from app.web.urls import API

logger = logging.getLogger("tokenroof")
FORM_ROOM_BYTES = 65_536
KEPT_AFTER_END = timedelta(days=30)
DESCRIPTION = (
    "Does a model fit on an accelerator, how fast can it be, and what is in the way? Numbers are SI units: seconds, "
    "bytes, FLOP; GB is 10^9 bytes. A ceiling cannot be beaten, a rule of thumb is what people learn, and what is "
    "not claimed is null. Errors are application/problem+json with the path of each field."
)


def create_app(settings: Settings, catalog: Catalog | None = None) -> FastAPI:
    """The application for `settings`: its own database, probes and assets; two can live in one process.

    Its catalog is the shipped one if none is given.

    Raises:
        AssetsMissingError: the browser assets have not been built.
    """
    assets = Assets(settings.assets_dir)
    templates = Templates(assets)
    errors = ErrorPages(templates)
    services = _services(settings, catalog or load_catalog())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if services.recorder is not None:
            services.recorder.open()
        yield
        if services.recorder is not None:
            await services.recorder.aclose()
        await services.bench.aclose()
        await services.typed.aclose()
        await services.sampler.aclose()
        await services.hub.aclose()
        if services.engine is not None:
            services.engine.dispose()

    app = FastAPI(
        title="Tokenroof",
        version="1",
        description=DESCRIPTION,
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        middleware=[
            Middleware(SecurityHeaders, hsts=settings.hsts),
            Middleware(RequestLog, failure=errors.failure),
            Middleware(Doorkeeper, allowed_hosts=settings.allowed_hosts),
            Middleware(HeadAsGet),
            Middleware(
                BodyLimit,
                refuse=errors.answer,
                most_bytes=settings.max_body_bytes,
                by_path=_larger_bodies(settings),
            ),
            Middleware(GZipMiddleware, minimum_size=1_000, compresslevel=5),
        ],
    )
    app.state.services, app.state.templates = services, templates
    app.state.live_boards = LiveBoards(services.sampler, services.typed, services.catalog)
    app.state.live_feed = LiveFeed(app.state.live_boards, services, templates)
    app.state.form_lists = form_lists(services.catalog)
    app.state.editor_samples = samples_of(services.catalog)
    errors.install(app)
    install_openapi(app)
    app.include_router(all_routes())
    app.mount(MOUNT_PATH, AssetFiles(assets))
    return app


def _larger_bodies(settings: Settings) -> dict[str, int]:
    """The paths that take more than others: a file of the largest size has room for the form around it."""
    most = settings.max_batch_body_bytes
    paths = (f"{API}/evaluate/batch", f"{API}/import", "/import", f"{API}/paste", "/paste", f"{API}/benchmarks")
    return dict.fromkeys(paths, most) | {"/benchmarks": most + FORM_ROOM_BYTES}


def create_app_from_environment() -> FastAPI:
    """The application for the settings of the environment; what each server process calls."""
    return create_app(Settings())


def _services(settings: Settings, catalog: Catalog) -> Services:
    """The services; without a sound database the product still calculates, and says what is missing."""
    engine, fault = None, None
    try:
        migrate(settings.database_path)
        engine = create_store_engine(settings.database_path)
        # An expired or revoked link is remembered for a while, so that it can answer "gone", and then forgotten.
        before = datetime.now(UTC) - KEPT_AFTER_END
        for kind in KINDS:
            Links(engine, kind.name).purge(before)
    except StoreError as error:
        fault = str(error)
        logger.error("saved links are off: %s", fault)
    probes: list[Probe] = [NvidiaProbe(), AmdProbe(), *server_probes(settings), HostProbe()]
    sampler = Sampler(probes, interval_s=settings.probe_interval_s, max_viewers=settings.probe_max_streams)
    return Services(
        settings=settings,
        catalog=catalog,
        sampler=sampler,
        engine=engine,
        hub=Hub(settings),
        shelf=ModelShelf(catalog),
        validation=ValidationSheet(catalog),
        typed=TypedServers(settings),
        bench=Bench(Rig(readings=sampler.latest, store=RoofStore(settings.data_dir))),
        recorder=None if engine is None else Recorder(sampler, engine, settings),
        store_fault=fault,
    )
