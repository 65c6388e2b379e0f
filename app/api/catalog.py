"""The engines of the catalog; models and accelerators have modules of their own."""

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app.api.facts import facts
from app.web.problem import JsonResponse
from app.web.services import CatalogDep

router = APIRouter(tags=["catalog"])


@router.get("/engines", response_model=dict[str, Any])
async def engines(catalog: CatalogDep) -> Response:
    """The engines a scenario can name, and what their memory setting means."""
    return JsonResponse({"engines": [facts(engine) for engine in catalog.engines.values()]})
