"""Snapshots of the live page: saved, shown as they stood, and revoked."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.live_view.snapshot import frozen, thawed
from app.pages.live import templates_of
from app.pages.saving import query_of, text_of, texts_of
from app.pages.secret_links import PRIVATE, edit_token_of, shown_once, to_new_link
from app.refusal import ScenarioError
from app.web import urls
from app.web.links import expiry, living, store_problems
from app.web.live import live_round, watching_of
from app.web.live_boards import asked_of
from app.web.problem import invalid, refusals_of
from app.web.services import services_of

NOT_FOUND = "There is no snapshot at this address."
router = APIRouter(include_in_schema=False)
Slug = Annotated[str, Path()]


@router.post("/live/snapshots")
async def save(request: Request) -> Response:
    """Save the readings of the moment; then show them, with the edit token, once."""
    services = services_of(request)
    async with request.form() as form:
        texts, items = texts_of(form), query_of(form)
    try:
        asked = asked_of(items, services.catalog)
    except ScenarioError as error:
        raise invalid(refusals_of(error)) from error
    latest = await live_round(services, watching_of(request))
    contents = await run_in_threadpool(
        frozen,
        latest,
        services.sampler.history,
        asked,
        services.catalog,
        services.bench.roofs(),
        texts.title,
        expiry(texts.expires_in_days, services.settings),
    )
    with store_problems():
        made = await run_in_threadpool(services.snapshots.create, contents)
    return to_new_link(request, made, urls.snapshot(made.slug))


@router.get("/live/s/{slug}")
async def show(slug: Slug, request: Request) -> Response:
    """The snapshot as it stood."""
    services = services_of(request)
    saved = await run_in_threadpool(living, services.snapshots, slug, NOT_FOUND)
    context: dict[str, Any] = {
        "slug": slug,
        "saved": saved,
        "view": thawed(saved.document),
        "address": urls.absolute(request, services.settings, urls.snapshot(slug)),
        "edit_token": edit_token_of(request),
        "twin": urls.snapshot_api(slug),
    }
    page = templates_of(request).page("live_snapshot", context, headers=PRIVATE)
    return shown_once(request, page, urls.snapshot(slug))


@router.post("/live/s/{slug}/revoke")
async def revoke(slug: Slug, request: Request) -> Response:
    """Revoke the link: what it showed is wiped, and its address answers as if it had never been."""
    services = services_of(request)
    async with request.form() as form:
        token = text_of(form, "edit_token").strip()
    with store_problems(NOT_FOUND):
        await run_in_threadpool(services.snapshots.revoke, slug, token)
    return templates_of(request).page("revoked", {}, headers=PRIVATE)
