"""What people keep behind a secret link, as pages: saved, shown, edited and revoked, for every kind."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

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
from app.features.links.saving import SEE_OTHER, answer_of, query_of, saving_context, text_of, texts_of
from app.features.live.snapshots import frozen, thawed
from app.features.live.stream import asked_of, live_round, watching_of
from app.features.services import ServicesDep, services_of
from app.features.workbench.answer_view import BINARY, answer_view
from app.scenario.refusal import ScenarioError
from app.scenario.scenario import Scenario
from app.store.links import Contents, Saved
from app.store.tables import TITLE_MAX_CHARS
from app.web import urls
from app.web.problem import ProblemError, invalid, refusals_of
from app.web.query import scenario_from
from app.web.templating import TemplatesDep

TOKEN_COOKIE: Final = "edit_token"  # noqa: S105 (its name)
SHOWN_ONCE_S: Final = 300
pages = APIRouter(include_in_schema=False)
Slug = Annotated[str, Path()]


@dataclass(frozen=True, slots=True)
class LinkPage:
    """The pages of one kind: where its form is sent, what is kept of it, and what its template needs besides."""

    kind: LinkKind[Any]
    save_at: str
    contents: Callable[[FormData, Request], Awaitable[Contents]]
    context: Callable[[str, Saved, Request], Mapping[str, Any]]


def add_link_pages(router: APIRouter, of: LinkPage) -> None:
    """Save, show and revoke; edit too, where the kind can be edited."""
    kind = of.kind
    page = kind.page("{slug}")

    async def save(request: Request) -> Response:
        async with request.form() as form:
            contents = await of.contents(form, request)
        return await _created(request, kind, contents)

    async def show(slug: Slug, request: Request, services: ServicesDep, templates: TemplatesDep) -> Response:
        saved = await run_in_threadpool(living, services.links(kind.name), slug, kind.not_found)
        edit_token = request.cookies.get(TOKEN_COOKIE)
        context = {
            "slug": slug,
            "saved": saved,
            "link": kind.page(slug),
            "address": urls.absolute(request, services.settings, kind.page(slug)),
            "edit_token": edit_token,
            "twin": kind.api(slug),
            **await run_in_threadpool(of.context, slug, saved, request),
        }
        response = templates.page(kind.template, context, headers=PRIVATE)
        if edit_token:  # shown once
            response.delete_cookie(TOKEN_COOKIE, path=kind.page(slug))
        return response

    async def edit(slug: Slug, request: Request, services: ServicesDep) -> Response:
        links = services.links(kind.name)
        async with request.form() as form:
            texts, token = texts_of(form, LinkTexts), text_of(form, "edit_token").strip()
        saved = await run_in_threadpool(living, links, slug, kind.not_found)
        contents = replace(
            saved,
            title=texts.title,
            document={**saved.document, "notes": texts.notes},
            expires_at=expiry(texts.expires_in_days, services.settings),
        )
        with store_problems(kind.not_found):
            await run_in_threadpool(links.replace, slug, token, contents)
        return RedirectResponse(kind.page(slug), SEE_OTHER, PRIVATE)

    async def revoke(slug: Slug, request: Request, services: ServicesDep, templates: TemplatesDep) -> Response:
        async with request.form() as form:
            token = text_of(form, "edit_token").strip()
        with store_problems(kind.not_found):
            await run_in_threadpool(services.links(kind.name).revoke, slug, token)
        return templates.page("revoked", {}, headers=PRIVATE)

    router.add_api_route(of.save_at, save, methods=["POST"])
    router.add_api_route(page, show, methods=["GET"])
    router.add_api_route(f"{page}/revoke", revoke, methods=["POST"])
    if kind.is_editable:
        router.add_api_route(f"{page}/edit", edit, methods=["POST"])


async def _created(request: Request, kind: LinkKind[Any], contents: Contents) -> Response:
    """Store a new link and go to its page.

    The token travels in a cookie of that one page, which the page takes back: never in an address.
    """
    with store_problems(kind.not_found):
        made = await run_in_threadpool(services_of(request).links(kind.name).create, contents)
    path = kind.page(made.slug)
    response = RedirectResponse(path, SEE_OTHER, PRIVATE)
    response.set_cookie(
        TOKEN_COOKIE,
        made.edit_token,
        max_age=SHOWN_ONCE_S,
        path=path,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@pages.post("/c/{slug}/duplicate")
async def duplicate(slug: Slug, request: Request, services: ServicesDep) -> Response:
    """A new link of one's own to the same scenario, with today's numbers and the default expiry."""
    saved = await run_in_threadpool(living, services.links("configuration"), slug)
    seen = await run_in_threadpool(view, saved, services.catalog)
    if seen.answer is None:
        raise ProblemError(422, f"This scenario can no longer be answered: {seen.obstacle}")
    title = f"Copy of {saved.title}"[:TITLE_MAX_CHARS]
    contents = contents_of(seen.answer, title, seen.payload.notes, expiry(None, services.settings))
    return await _created(request, CONFIGURATION, contents)


async def _configuration(form: FormData, request: Request) -> Contents:
    services = services_of(request)
    texts, answered = texts_of(form, LinkTexts), answer_of(form, services.catalog)
    return contents_of(answered, texts.title, texts.notes, expiry(texts.expires_in_days, services.settings))


def _configuration_context(slug: str, saved: Saved, request: Request) -> Mapping[str, Any]:
    services = services_of(request)
    seen = view(saved, services.catalog)
    binary = request.query_params.get("units") == BINARY
    return {
        **saving_context(services.settings),
        "savable": False,
        "undo": None,
        "seen": seen,
        "view": answer_view(seen.answer, binary=binary) if seen.answer else None,
        "units_href": lambda units: urls.saved(slug) + (f"?units={units}" if units == BINARY else ""),
    }


async def _snapshot(form: FormData, request: Request) -> Contents:
    """The readings of the moment."""
    services = services_of(request)
    texts, items = texts_of(form, LinkTexts), query_of(form)
    try:
        asked = asked_of(items, services.catalog)
    except ScenarioError as error:
        raise invalid(refusals_of(error)) from error
    return await run_in_threadpool(
        frozen,
        await live_round(services, watching_of(request)),
        services.sampler.history,
        asked,
        services.catalog,
        services.bench.roofs(),
        texts.title,
        expiry(texts.expires_in_days, services.settings),
    )


def _snapshot_context(_: str, saved: Saved, _request: Request) -> Mapping[str, Any]:
    return {"view": thawed(SNAPSHOT.payload_of(saved))}


async def _calibration(form: FormData, request: Request) -> Contents:
    """The calibration that the posted query carries."""
    services = services_of(request)
    texts, items = texts_of(form, ShareTexts), query_of(form)
    expires_at = expiry(texts.expires_in_days, services.settings)
    try:
        scenario = _called(scenario_from(items), texts.title)
        return await run_in_threadpool(kept.contents_of, scenario, services.catalog, texts.title, expires_at)
    except ScenarioError as error:
        raise invalid(refusals_of(error)) from error


def _called(scenario: Scenario, title: str) -> Scenario:
    """The scenario with its calibration called as it is kept: the workbench then says the same name as the link."""
    if scenario.calibration is None:
        return scenario
    return scenario.model_copy(update={"calibration": scenario.calibration.model_copy(update={"name": title})})


def _calibration_context(_: str, saved: Saved, request: Request) -> Mapping[str, Any]:
    scenario = kept.kept(CALIBRATION.payload_of(saved).scenario, services_of(request).catalog)
    return {
        "calibration": scenario.calibration if scenario else None,
        "items": urls.scenario_items(scenario) if scenario else (),
        "stack": _stack(scenario.document()) if scenario else "",
    }


def _stack(scenario: Mapping[str, Any]) -> str:
    """What it was fitted for, in a line of ids."""
    model, hardware, engine = scenario["model"], scenario["hardware"], scenario["engine"]
    card = hardware["id"] or (hardware["custom"] or {}).get("name", "")
    release = f" {engine['version']}" if engine["version"] else ""
    return f"{model['id'] or model['name'] or 'a model of one’s own'} on {card}, {engine['id']}{release}"


for each in (
    LinkPage(CONFIGURATION, "/save", _configuration, _configuration_context),
    LinkPage(SNAPSHOT, "/live/snapshots", _snapshot, _snapshot_context),
    LinkPage(CALIBRATION, "/calibrations", _calibration, _calibration_context),
):
    add_link_pages(pages, each)
