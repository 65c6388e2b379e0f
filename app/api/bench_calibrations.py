"""Calibrations of one's own: keep, read, revoke."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import Field
from starlette.responses import Response

from app.api.configurations import PRIVATE, Created, EditToken
from app.api.problems import EDIT_PROBLEMS, LINK_PROBLEMS, PROBLEMS, STORE_PROBLEMS
from app.bench.keeping import contents_of, kept
from app.refusal import under
from app.scenario import Scenario
from app.scenario_calibration import OwnCalibration
from app.scenario_parts import Part
from app.web import urls
from app.web.links import ShareTexts, expiry, living, store_problems
from app.web.problem import JsonResponse, StrictRoute
from app.web.services import CatalogDep, ServicesDep

NOT_FOUND = "There is no calibration at this address."
router = APIRouter(tags=["benchmarks"], route_class=StrictRoute)
Slug = Annotated[str, Path(description="The link's secret, 26 characters.")]


class KeepRequest(ShareTexts):
    """A scenario that carries the calibration, and the title to keep it under."""

    scenario: Scenario = Field(description="With its `calibration`, as /benchmarks answers it.")


class KeptCalibration(Part):
    """A calibration that was kept."""

    title: str
    created_at: datetime
    expires_at: datetime | None
    formula_version: str
    catalog_version: str
    calibration: OwnCalibration | None = Field(description="Null where this release no longer reads it.")
    scenario: dict[str, Any] | None = Field(description="What it was fitted for; it carries the calibration.")


@router.post("/calibrations", status_code=201, response_model=Created, responses=PROBLEMS | STORE_PROBLEMS)
def keep(body: KeepRequest, request: Request, services: ServicesDep) -> Response:
    """Keep a calibration behind a link. Anyone who has it can read it; the edit token revokes it."""
    with under("scenario"):
        contents = contents_of(
            body.scenario, services.catalog, body.title, expiry(body.expires_in_days, services.settings)
        )
    with store_problems(NOT_FOUND):
        made = services.calibrations.create(contents)
    document = {
        "slug": made.slug,
        "url": urls.absolute(request, services.settings, urls.calibration(made.slug)),
        "edit_token": made.edit_token,
        "expires_at": _text(made.expires_at),
    }
    return JsonResponse(document, status_code=201, headers=PRIVATE | {"Location": urls.calibration_api(made.slug)})


@router.get("/calibrations/{slug}", response_model=KeptCalibration, responses=LINK_PROBLEMS)
def read(slug: Slug, catalog: CatalogDep, services: ServicesDep) -> Response:
    """A calibration that was kept, and the scenario that it was fitted for."""
    saved = living(services.calibrations, slug, NOT_FOUND)
    scenario = kept(saved.document, catalog).scenario
    document = None if scenario is None else scenario.document()
    return JsonResponse(
        {
            "title": saved.title,
            "created_at": _text(saved.created_at),
            "expires_at": _text(saved.expires_at),
            "formula_version": saved.formula_version,
            "catalog_version": saved.catalog_version,
            "calibration": None if document is None else document["calibration"],
            "scenario": document,
        },
        headers=PRIVATE,
    )


@router.delete("/calibrations/{slug}", status_code=204, responses=LINK_PROBLEMS | EDIT_PROBLEMS)
def revoke(slug: Slug, edit_token: EditToken, services: ServicesDep) -> Response:
    """Revoke the link; what it showed is wiped."""
    with store_problems(NOT_FOUND):
        services.calibrations.revoke(slug, edit_token)
    return Response(status_code=204, headers=PRIVATE)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")
