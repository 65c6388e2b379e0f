"""DeepSeek-V3/R1 as served in production: published figures beside the prediction."""

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app.charts.gap_chart import CAUSES
from app.pages.answer_view import subject
from app.production import production, published
from app.web import urls
from app.web.services import CatalogDep
from app.web.templating import TemplatesDep

router = APIRouter(include_in_schema=False)


@router.get("/production")
async def deepseek(catalog: CatalogDep, templates: TemplatesDep) -> Response:
    """The published deployment, its sizes and both of its figures."""
    found = production(catalog)
    items = urls.scenario_items(found.answer.scenario)
    evaluation = found.answer.evaluation
    expected = evaluation.measures.expected
    context: dict[str, Any] = {
        "told": published(),
        "sides": found.sides,
        "subject": subject(found.answer),
        "verdict": evaluation.verdict,
        "measures": evaluation.measures,
        "causes": [(name, getattr(expected.causes, key), why) for key, name, _, why in CAUSES] if expected else [],
        "workbench": urls.workbench(items),
        "optimizations": urls.optimizations(items),
        "twin": urls.evaluate_api(items),
    }
    return templates.page("production", context, 200)
