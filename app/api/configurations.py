"""Saved configurations: make, read, replace, revoke."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from app.answer import answer
from app.api.problems import EDIT_PROBLEMS, LINK_PROBLEMS, PROBLEMS, STORE_PROBLEMS
from app.api.schemas import Evaluation
from app.document import document
from app.refusal import under
from app.saved_view import SavedView, contents_of, view
from app.scenario import Scenario
from app.store.records import Contents
from app.web import urls
from app.web.links import LinkTexts, expiry, living, store_problems
from app.web.problem import JsonResponse, StrictRoute
from app.web.services import CatalogDep, ConfigurationsDep, Services, ServicesDep

router = APIRouter(tags=["configurations"], route_class=StrictRoute)
Slug = Annotated[str, Path(description="The link's secret, 26 characters.")]
EditToken = Annotated[
    str, Header(alias="X-Edit-Token", description="Shown once, when the link was made.", max_length=200)
]
PRIVATE = {"Cache-Control": "private, no-store", "X-Robots-Tag": "noindex", "Referrer-Policy": "no-referrer"}


class SaveRequest(LinkTexts):
    """A scenario to save, with its texts."""

    scenario: Scenario


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
    scenario: dict[str, Any]
    then: Then
    changed: list[Difference] = Field(description="Numbers that today's formulas or facts give otherwise.")
    evaluation: Evaluation | None = Field(description="Today's; null where the scenario can no longer be answered.")


@router.post("/configurations", status_code=201, response_model=Created, responses=PROBLEMS | STORE_PROBLEMS)
def create(body: SaveRequest, request: Request, services: ServicesDep, configurations: ConfigurationsDep) -> Response:
    """Save a scenario. The link is read-only for everyone; the edit token changes or revokes it."""
    contents = _contents(body, services)
    with store_problems():
        made = configurations.create(contents)
    address = urls.absolute(request, services.settings, urls.saved(made.slug))
    return JsonResponse(
        {
            "slug": made.slug,
            "url": address,
            "edit_token": made.edit_token,
            "expires_at": _text(made.expires_at),
        },
        status_code=201,
        headers=PRIVATE | {"Location": urls.saved_api(made.slug)},
    )


@router.get("/configurations/{slug}", response_model=Configuration, responses=LINK_PROBLEMS)
def read(slug: Slug, catalog: CatalogDep, configurations: ConfigurationsDep) -> Response:
    """A saved configuration with today's evaluation, and what has changed since it was saved."""
    return JsonResponse(_document(slug, view(living(configurations, slug), catalog)), headers=PRIVATE)


@router.put("/configurations/{slug}", response_model=Configuration, responses=PROBLEMS | LINK_PROBLEMS | EDIT_PROBLEMS)
def replace(
    slug: Slug,
    body: SaveRequest,
    edit_token: EditToken,
    services: ServicesDep,
    catalog: CatalogDep,
    configurations: ConfigurationsDep,
) -> Response:
    """Replace what the link shows; the link stays."""
    contents = _contents(body, services)
    with store_problems():
        saved = configurations.replace(slug, edit_token, contents)
    return JsonResponse(_document(slug, view(saved, catalog)), headers=PRIVATE)


@router.delete("/configurations/{slug}", status_code=204, responses=LINK_PROBLEMS | EDIT_PROBLEMS)
def revoke(slug: Slug, edit_token: EditToken, configurations: ConfigurationsDep) -> Response:
    """Revoke the link; what it showed is wiped."""
    with store_problems():
        configurations.revoke(slug, edit_token)
    return Response(status_code=204, headers=PRIVATE)


def _contents(body: SaveRequest, services: Services) -> Contents:
    with under("scenario"):
        answered = answer(body.scenario, services.catalog)
    return contents_of(answered, body.title, body.notes, expiry(body.expires_in_days, services.settings))


def _document(slug: str, seen: SavedView) -> dict[str, Any]:
    saved = seen.saved
    return {
        "slug": slug,
        "title": saved.title,
        "notes": saved.notes,
        "created_at": _text(saved.created_at),
        "updated_at": _text(saved.updated_at),
        "expires_at": _text(saved.expires_at),
        "scenario": saved.scenario,
        "then": {
            "formula_version": saved.formula_version,
            "catalog_version": saved.catalog_version,
            "numbers": saved.headline,
        },
        "changed": [
            {"id": d.id, "label": d.label, "unit": d.unit, "then": d.then, "now": d.now} for d in seen.differences
        ],
        "evaluation": None if seen.answer is None else document(seen.answer),
    }


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")
