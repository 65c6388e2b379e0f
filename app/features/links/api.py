"""What people keep behind a secret link, as JSON: create, read, replace and revoke, for every kind."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request, Security
from fastapi.security import APIKeyHeader
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.features.benchmarks import kept
from app.features.links.links import (
    CALIBRATION,
    CONFIGURATION,
    PRIVATE,
    SNAPSHOT,
    LinkKind,
    LinkTexts,
    ShareTexts,
    contents_of,
    expiry,
    living,
    store_problems,
    view,
)
from app.features.live.snapshots import frozen
from app.features.live.stream import live_round
from app.features.services import Services, ServicesDep
from app.features.workbench.schemas import Evaluation
from app.scenario.answer import answer
from app.scenario.document import document
from app.scenario.parts import OwnCalibration, Part
from app.scenario.refusal import under
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario
from app.store.links import Contents, Saved
from app.web import urls
from app.web.openapi import EDIT_PROBLEMS, LINK_PROBLEMS, PROBLEMS, REVOKE_PROBLEMS, STORE_PROBLEMS
from app.web.problem import JsonResponse, StrictRoute

api = APIRouter(route_class=StrictRoute)
Slug = Annotated[str, Path(description="The link's secret, 26 characters.")]
# The document has it as a security scheme; the parameter is what reads and checks it.
EditToken = Annotated[str, Header(alias="X-Edit-Token", max_length=200, include_in_schema=False)]
EDIT_TOKEN = Security(
    APIKeyHeader(
        name="X-Edit-Token",
        scheme_name="EditToken",
        description="The token of one link, shown once, when it was made.",
        auto_error=False,
    )
)


class SaveRequest(LinkTexts):
    """A scenario to save, with its texts."""

    scenario: Scenario


class SnapshotRequest(LinkTexts):
    """What the readings of the moment are saved under; `notes` are not kept."""

    scenario: Scenario | None = Field(
        None, description="What they are put beside, under the load of each server; left out: what was probed."
    )


class KeepRequest(ShareTexts):
    """A scenario that carries the calibration, and the title to keep it under."""

    scenario: Scenario = Field(description="With its `calibration`, as /benchmarks answers it.")


class Created(BaseModel):
    """The link, and the token that changes or revokes it: kept nowhere, shown now only."""

    slug: str
    url: str
    edit_token: str
    expires_at: datetime | None


class Then(BaseModel):
    """What the link remembers."""

    formula_version: str
    catalog_version: str
    numbers: dict[str, float] = Field(description="Every explained number of that day, by path.")


class Difference(BaseModel):
    """A number that has changed since."""

    id: str
    label: str
    unit: str
    then: float
    now: float | None


class Configuration(BaseModel):
    """A saved configuration: as it was, and as it is today."""

    slug: str
    title: str
    notes: str
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    scenario: Scenario | dict[str, Any] = Field(
        description="Normalised, as it was saved; an object of any form where `evaluation` is null."
    )
    then: Then
    changed: list[Difference] = Field(description="Numbers that today's formulas or facts give otherwise.")
    evaluation: Evaluation | None = Field(description="Today's; null where the scenario can no longer be answered.")


class Snapshot(Part):
    """A snapshot as it was."""

    title: str
    created_at: datetime
    expires_at: datetime | None
    formula_version: str
    catalog_version: str
    probes: list[dict[str, Any]] = Field(description="The readings, as /probes has them; servers are numbered.")
    live: dict[str, Any] | None = Field(description="What they came to, as /probes has it.")


class KeptCalibration(Part):
    """A calibration that was kept."""

    title: str
    created_at: datetime
    expires_at: datetime | None
    formula_version: str
    catalog_version: str
    calibration: OwnCalibration | None = Field(description="Null where this release no longer reads it.")
    scenario: Scenario | None = Field(description="What it was fitted for; it carries the calibration.")


@dataclass(frozen=True, slots=True)
class LinkApi:
    """The JSON of one kind: what is sent, what is shown, and the two ways between them and the store."""

    kind: LinkKind[Any]
    tag: str
    body: type[ShareTexts]
    shown: type[BaseModel]
    contents: Callable[[Any, Services], Awaitable[Contents]]
    document: Callable[[str, Saved, Services], dict[str, Any]]
    create: str
    read: str


def add_link_routes(router: APIRouter, api: LinkApi) -> None:
    """Create, read and revoke; replace too, where the kind can be edited."""
    kind = api.kind
    address = kind.api("{slug}").removeprefix(urls.API)

    async def create(body: Any, request: Request, services: ServicesDep) -> Response:
        links = services.links(kind.name)
        contents = await api.contents(body, services)
        with store_problems(kind.not_found):
            made = await run_in_threadpool(links.create, contents)
        created = {
            "slug": made.slug,
            "url": urls.absolute(request, services.settings, kind.page(made.slug)),
            "edit_token": made.edit_token,
            "expires_at": _text(made.expires_at),
        }
        return JsonResponse(created, status_code=201, headers=PRIVATE | {"Location": kind.api(made.slug)})

    def read(slug: Slug, services: ServicesDep) -> Response:
        saved = living(services.links(kind.name), slug, kind.not_found)
        return JsonResponse(api.document(slug, saved, services), headers=PRIVATE)

    async def replace(slug: Slug, body: Any, edit_token: EditToken, services: ServicesDep) -> Response:
        links = services.links(kind.name)
        contents = await api.contents(body, services)
        with store_problems(kind.not_found):
            saved = await run_in_threadpool(links.replace, slug, edit_token, contents)
        return JsonResponse(await run_in_threadpool(api.document, slug, saved, services), headers=PRIVATE)

    def revoke(slug: Slug, edit_token: EditToken, services: ServicesDep) -> Response:
        with store_problems(kind.not_found):
            services.links(kind.name).revoke(slug, edit_token)
        return Response(status_code=204, headers=PRIVATE)

    for reader in (create, replace):  # FastAPI reads the form of the body from here
        reader.__annotations__["body"] = api.body
    router.add_api_route(
        address.removesuffix("/{slug}"),
        create,
        methods=["POST"],
        status_code=201,
        response_model=Created,
        responses=PROBLEMS | STORE_PROBLEMS,
        tags=[api.tag],
        operation_id=f"create_{kind.name}",
        summary=f"Create a {kind.noun}",
        description=api.create,
        response_description="The link, and its edit token, which is shown this once.",
    )
    router.add_api_route(
        address,
        read,
        methods=["GET"],
        response_model=api.shown,
        responses=LINK_PROBLEMS,
        tags=[api.tag],
        operation_id=f"read_{kind.name}",
        summary=f"Read a {kind.noun}",
        description=api.read,
        response_description=f"The {kind.noun}.",
    )
    if kind.is_editable:
        router.add_api_route(
            address,
            replace,
            methods=["PUT"],
            response_model=api.shown,
            responses=PROBLEMS | LINK_PROBLEMS | EDIT_PROBLEMS,
            tags=[api.tag],
            operation_id=f"replace_{kind.name}",
            summary=f"Replace a {kind.noun}",
            description="Replace what the link shows; the link stays.",
            response_description=f"The {kind.noun}, as it is from now on.",
            dependencies=[EDIT_TOKEN],
        )
    router.add_api_route(
        address,
        revoke,
        methods=["DELETE"],
        status_code=204,
        responses=REVOKE_PROBLEMS,
        tags=[api.tag],
        operation_id=f"revoke_{kind.name}",
        summary=f"Revoke a {kind.noun}",
        description="Revoke the link; what it showed is wiped. An expired link may still be revoked.",
        response_description="The link is revoked.",
        dependencies=[EDIT_TOKEN],
    )


async def _configuration(body: SaveRequest, services: Services) -> Contents:
    with under("scenario"):
        answered = await run_in_threadpool(answer, body.scenario, services.catalog)
    expires_at = expiry(body.expires_in_days, services.settings)
    return await run_in_threadpool(contents_of, answered, body.title, body.notes, expires_at)


def _configuration_document(slug: str, saved: Saved, services: Services) -> dict[str, Any]:
    seen = view(saved, services.catalog)
    return {
        "slug": slug,
        "title": saved.title,
        "notes": seen.payload.notes,
        "created_at": _text(saved.created_at),
        "updated_at": _text(saved.updated_at),
        "expires_at": _text(saved.expires_at),
        "scenario": seen.payload.scenario,
        "then": {
            "formula_version": saved.formula_version,
            "catalog_version": saved.catalog_version,
            "numbers": seen.payload.headline,
        },
        "changed": [
            {"id": d.id, "label": d.label, "unit": d.unit, "then": d.then, "now": d.now} for d in seen.differences
        ],
        "evaluation": None if seen.answer is None else document(seen.answer),
    }


async def _snapshot(body: SnapshotRequest, services: Services) -> Contents:
    asked = None
    if body.scenario is not None:
        with under("scenario"):
            asked = resolve(body.scenario, services.catalog).scenario
    return await run_in_threadpool(
        frozen,
        await live_round(services),
        services.sampler.history,
        asked,
        services.catalog,
        services.bench.roofs(),
        body.title,
        expiry(body.expires_in_days, services.settings),
    )


def _snapshot_document(_: str, saved: Saved, _services: Services) -> dict[str, Any]:
    payload = SNAPSHOT.payload_of(saved)
    return {**_frame(saved), "probes": payload.probes, "live": payload.live}


async def _calibration(body: KeepRequest, services: Services) -> Contents:
    expires_at = expiry(body.expires_in_days, services.settings)
    with under("scenario"):
        return await run_in_threadpool(kept.contents_of, body.scenario, services.catalog, body.title, expires_at)


def _calibration_document(_: str, saved: Saved, services: Services) -> dict[str, Any]:
    scenario = kept.kept(CALIBRATION.payload_of(saved).scenario, services.catalog)
    written = None if scenario is None else scenario.document()
    return {**_frame(saved), "calibration": None if written is None else written["calibration"], "scenario": written}


def _frame(saved: Saved) -> dict[str, Any]:
    return {
        "title": saved.title,
        "created_at": _text(saved.created_at),
        "expires_at": _text(saved.expires_at),
        "formula_version": saved.formula_version,
        "catalog_version": saved.catalog_version,
    }


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")


APIS = (
    LinkApi(
        CONFIGURATION,
        "configurations",
        SaveRequest,
        Configuration,
        _configuration,
        _configuration_document,
        "Save a scenario. The link is read-only for everyone; the edit token changes or revokes it.",
        "A saved configuration with today's evaluation, and what has changed since it was saved.",
    ),
    LinkApi(
        SNAPSHOT,
        "probes",
        SnapshotRequest,
        Snapshot,
        _snapshot,
        _snapshot_document,
        "Save the live readings of this moment, without names of hosts, UUIDs of cards and processes.",
        "A snapshot: readings and comparison as they were.",
    ),
    LinkApi(
        CALIBRATION,
        "benchmarks",
        KeepRequest,
        KeptCalibration,
        _calibration,
        _calibration_document,
        "Keep a calibration behind a link. Anyone who has it can read it; the edit token revokes it.",
        "A calibration that was kept, and the scenario that it was fitted for.",
    ),
)
for each in APIS:
    add_link_routes(api, each)
