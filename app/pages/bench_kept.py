"""Calibrations that people keep: saved under a name, shown to who has the link, revoked by who has the token."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.responses import Response

from app.bench.keeping import contents_of, kept
from app.pages.saving import query_of, text_of
from app.pages.secret_links import PRIVATE, edit_token_of, shown_once, to_new_link
from app.refusal import Refusal, ScenarioError
from app.scenario import Scenario
from app.web import urls
from app.web.links import ShareTexts, expiry, living, store_problems
from app.web.problem import invalid, refusals_of
from app.web.query import scenario_from
from app.web.services import services_of
from app.web.templating import Templates

NOT_FOUND = "There is no calibration at this address."
router = APIRouter(include_in_schema=False)
Slug = Annotated[str, Path()]


@router.post("/calibrations")
async def keep(request: Request) -> Response:
    """Keep the calibration that the posted query carries; then show it, with the edit token, once."""
    services = services_of(request)
    async with request.form() as form:
        texts, items = _texts(form), query_of(form)
    try:
        scenario = _called(scenario_from(items), texts.title)
        contents = await run_in_threadpool(
            contents_of, scenario, services.catalog, texts.title, expiry(texts.expires_in_days, services.settings)
        )
    except ScenarioError as error:
        raise invalid(refusals_of(error)) from error
    with store_problems(NOT_FOUND):
        made = await run_in_threadpool(services.calibrations.create, contents)
    return to_new_link(request, made, urls.calibration(made.slug))


@router.get("/calibrations/{slug}")
async def show(slug: Slug, request: Request) -> Response:
    """The calibration, and the way into the workbench with it."""
    services = services_of(request)
    saved = await run_in_threadpool(living, services.calibrations, slug, NOT_FOUND)
    seen = await run_in_threadpool(kept, saved.document, services.catalog)
    context: dict[str, Any] = {
        "slug": slug,
        "saved": saved,
        "calibration": seen.scenario.calibration if seen.scenario else None,
        "items": urls.scenario_items(seen.scenario) if seen.scenario else (),
        "stack": _stack(seen.scenario.document()) if seen.scenario else "",
        "address": urls.absolute(request, services.settings, urls.calibration(slug)),
        "edit_token": edit_token_of(request),
        "twin": urls.calibration_api(slug),
    }
    page = _templates(request).page("bench_kept", context, headers=PRIVATE)
    return shown_once(request, page, urls.calibration(slug))


@router.post("/calibrations/{slug}/revoke")
async def revoke(slug: Slug, request: Request) -> Response:
    """Revoke the link: what it showed is wiped, and its address answers as if it had never been."""
    services = services_of(request)
    async with request.form() as form:
        token = text_of(form, "edit_token").strip()
    with store_problems(NOT_FOUND):
        await run_in_threadpool(services.calibrations.revoke, slug, token)
    return _templates(request).page("revoked", {}, headers=PRIVATE)


def _called(scenario: Scenario, title: str) -> Scenario:
    """The scenario with its calibration called as it is kept: the workbench then says the same name as the link."""
    if scenario.calibration is None:
        return scenario
    return scenario.model_copy(update={"calibration": scenario.calibration.model_copy(update={"name": title})})


def _texts(form: FormData) -> ShareTexts:
    """Title and expiry of a posted form.

    Raises:
        ProblemError: 422, each message at its field.
    """
    days = text_of(form, "expires_in_days").strip()
    if days and not (days.isascii() and days.isdigit() and len(days) < 6):
        raise invalid([Refusal("expires_in_days", "Must be a number of days.")])
    given = {"title": text_of(form, "title"), "expires_in_days": int(days) if days else None}
    try:
        return ShareTexts.model_validate(given)
    except ValidationError as error:
        raise invalid(refusals_of(error)) from error


def _stack(scenario: dict[str, Any]) -> str:
    """What it was fitted for, in a line of ids."""
    model, hardware, engine = scenario["model"], scenario["hardware"], scenario["engine"]
    card = hardware["id"] or (hardware["custom"] or {}).get("name", "")
    release = f" {engine['version']}" if engine["version"] else ""
    return f"{model['id'] or model['name'] or 'a model of one’s own'} on {card}, {engine['id']}{release}"


def _templates(request: Request) -> Templates:
    templates: Templates = request.app.state.templates
    return templates
