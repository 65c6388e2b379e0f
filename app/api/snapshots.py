"""Snapshots of the live readings: save, read, revoke."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.api.configurations import PRIVATE, Created, EditToken
from app.api.problems import EDIT_PROBLEMS, LINK_PROBLEMS, PROBLEMS, STORE_PROBLEMS
from app.live_view.snapshot import frozen, public
from app.refusal import under
from app.resolve import resolve
from app.scenario import Scenario
from app.scenario_parts import Part
from app.web import urls
from app.web.links import LinkTexts, expiry, living, store_problems
from app.web.live import live_round
from app.web.problem import JsonResponse, StrictRoute
from app.web.services import ServicesDep

NOT_FOUND = "There is no snapshot at this address."
router = APIRouter(tags=["probes"], route_class=StrictRoute)
Slug = Annotated[str, Path(description="The link's secret, 26 characters.")]


class SnapshotRequest(LinkTexts):
    """What the readings of the moment are saved under; `notes` are not kept."""

    scenario: Scenario | None = Field(
        None, description="What they are put beside, under the load of each server; left out: what was probed."
    )


class Snapshot(Part):
    """A snapshot as it was."""

    title: str
    created_at: datetime
    expires_at: datetime | None
    formula_version: str
    catalog_version: str
    probes: list[dict[str, Any]] = Field(description="The readings, as /probes has them; servers are numbered.")
    live: dict[str, Any] | None = Field(description="What they came to, as /probes has it.")


@router.post("/snapshots", status_code=201, response_model=Created, responses=PROBLEMS | STORE_PROBLEMS)
async def create(body: SnapshotRequest, request: Request, services: ServicesDep) -> Response:
    """Save the live readings of this moment, without names of hosts, UUIDs of cards and processes."""
    asked = None
    if body.scenario is not None:
        with under("scenario"):
            asked = resolve(body.scenario, services.catalog).scenario
    contents = await run_in_threadpool(
        frozen,
        await live_round(services),
        services.sampler.history,
        asked,
        services.catalog,
        services.bench.roofs(),
        body.title,
        expiry(body.expires_in_days, services.settings),
    )
    with store_problems():
        made = await run_in_threadpool(services.snapshots.create, contents)
    document = {
        "slug": made.slug,
        "url": urls.absolute(request, services.settings, urls.snapshot(made.slug)),
        "edit_token": made.edit_token,
        "expires_at": None if made.expires_at is None else made.expires_at.isoformat(timespec="seconds"),
    }
    return JsonResponse(document, status_code=201, headers=PRIVATE | {"Location": urls.snapshot_api(made.slug)})


@router.get("/snapshots/{slug}", response_model=Snapshot, responses=LINK_PROBLEMS)
def read(slug: Slug, services: ServicesDep) -> Response:
    """A snapshot: readings and comparison as they were."""
    saved = living(services.snapshots, slug, NOT_FOUND)
    return JsonResponse(
        {
            "title": saved.title,
            "created_at": saved.created_at.isoformat(timespec="seconds"),
            "expires_at": None if saved.expires_at is None else saved.expires_at.isoformat(timespec="seconds"),
            "formula_version": saved.formula_version,
            "catalog_version": saved.catalog_version,
            **public(saved.document),
        },
        headers=PRIVATE,
    )


@router.delete("/snapshots/{slug}", status_code=204, responses=LINK_PROBLEMS | EDIT_PROBLEMS)
def revoke(slug: Slug, edit_token: EditToken, services: ServicesDep) -> Response:
    """Revoke the link; what it showed is wiped."""
    with store_problems(NOT_FOUND):
        services.snapshots.revoke(slug, edit_token)
    return Response(status_code=204, headers=PRIVATE)
