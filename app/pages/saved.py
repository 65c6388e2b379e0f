"""A saved configuration as a page: shown to anyone who has the link, changed by who has the edit token."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from app.pages.answer_view import BINARY, answer_view
from app.pages.saving import answer_of, saving_context, text_of, texts_of
from app.pages.secret_links import PRIVATE, SEE_OTHER, edit_token_of, shown_once, to_new_link
from app.saved_view import contents_of, view
from app.store.records import Contents
from app.store.tables import TITLE_MAX_CHARS
from app.web import urls
from app.web.links import expiry, living, store_problems
from app.web.problem import ProblemError
from app.web.services import services_of
from app.web.templating import Templates

router = APIRouter(include_in_schema=False)
Slug = Annotated[str, Path()]


@router.post("/save")
async def save(request: Request) -> Response:
    """Save what the workbench shows; then show it, with the edit token, once."""
    services = services_of(request)
    async with request.form() as form:
        texts, answered = texts_of(form), answer_of(form, services.catalog)
    contents = contents_of(answered, texts.title, texts.notes, expiry(texts.expires_in_days, services.settings))
    return await _created(request, contents)


@router.post("/c/{slug}/duplicate")
async def duplicate(slug: Slug, request: Request) -> Response:
    """A new link of one's own to the same scenario, with today's numbers and the default expiry."""
    services = services_of(request)
    saved = await run_in_threadpool(living, services.configurations, slug)
    seen = view(saved, services.catalog)
    if seen.answer is None:
        raise ProblemError(422, f"This scenario can no longer be answered: {seen.obstacle}")
    title = f"Copy of {saved.title}"[:TITLE_MAX_CHARS]
    contents = contents_of(seen.answer, title, saved.notes, expiry(None, services.settings))
    return await _created(request, contents)


async def _created(request: Request, contents: Contents) -> Response:
    """Store a new link and go to it."""
    with store_problems():
        made = await run_in_threadpool(services_of(request).configurations.create, contents)
    return to_new_link(request, made, urls.saved(made.slug))


@router.get("/c/{slug}")
async def show(slug: Slug, request: Request) -> Response:
    """The saved configuration as it was and as it is."""
    services, templates = services_of(request), _templates(request)
    saved = await run_in_threadpool(living, services.configurations, slug)
    seen = view(saved, services.catalog)
    binary = request.query_params.get("units") == BINARY
    shown = answer_view(seen.answer, binary=binary) if seen.answer else None
    context: dict[str, Any] = {
        **saving_context(services.settings),
        "savable": False,
        "undo": None,
        "slug": slug,
        "seen": seen,
        "saved": saved,
        "view": shown,
        "address": urls.absolute(request, services.settings, urls.saved(slug)),
        "edit_token": edit_token_of(request),
        "units_href": lambda units: urls.saved(slug) + (f"?units={units}" if units == BINARY else ""),
        "twin": urls.saved_api(slug),
    }
    return shown_once(request, templates.page("saved", context, headers=PRIVATE), urls.saved(slug))


@router.post("/c/{slug}/edit")
async def edit(slug: Slug, request: Request) -> Response:
    """Change title, notes and expiry; the scenario stays as it was saved."""
    services = services_of(request)
    async with request.form() as form:
        texts, token = texts_of(form), text_of(form, "edit_token").strip()
    saved = await run_in_threadpool(living, services.configurations, slug)
    contents = saved.with_texts(texts.title, texts.notes, expiry(texts.expires_in_days, services.settings))
    with store_problems():
        await run_in_threadpool(services.configurations.replace, slug, token, contents)
    return RedirectResponse(urls.saved(slug), SEE_OTHER, PRIVATE)


@router.post("/c/{slug}/revoke")
async def revoke(slug: Slug, request: Request) -> Response:
    """Revoke the link: what it showed is wiped, and its address answers as if it had never been."""
    services = services_of(request)
    async with request.form() as form:
        token = text_of(form, "edit_token").strip()
    with store_problems():
        await run_in_threadpool(services.configurations.revoke, slug, token)
    return _templates(request).page("revoked", {}, headers=PRIVATE)


def _templates(request: Request) -> Templates:
    templates: Templates = request.app.state.templates
    return templates
