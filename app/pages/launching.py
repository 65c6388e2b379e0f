"""The launch page: every command, manifest and values file that starts a scenario."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.launch.variants import launch_variants, why_no_variant
from app.pages.answer_view import subject
from app.refusal import ScenarioError
from app.web import urls
from app.web.problem import invalid, refusals_of
from app.web.query import answer_from, items_of
from app.web.services import CatalogDep
from app.web.templating import TemplatesDep

router = APIRouter(include_in_schema=False)


@router.get("/launch")
async def launch(request: Request, catalog: CatalogDep, templates: TemplatesDep) -> Response:
    """The commands for the query's scenario."""
    try:
        answered = answer_from(items_of(request.query_params), catalog)
    except ScenarioError as error:
        raise invalid(refusals_of(error)) from error
    context: dict[str, Any] = {
        "subject": subject(answered),
        "engine": catalog.engines[answered.scenario.engine.id].name,
        "variants": launch_variants(answered.scenario, catalog),
        "why_none": why_no_variant(answered.scenario),
        "back": urls.workbench(urls.scenario_items(answered.scenario)),
        "verdict": answered.evaluation.verdict,
    }
    return templates.page("launch", context, 200)
