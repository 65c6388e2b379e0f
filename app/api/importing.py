"""A configuration in, the architecture that was read of it out: field by field, with what was assumed."""

from typing import Annotated, Any

from fastapi import APIRouter, Body
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.api.problems import IMPORT_PROBLEMS
from app.import_document import import_document
from app.model_import import Imported, ImportRequest
from app.web.importing import imported_from
from app.web.problem import FileRoute, JsonResponse
from app.web.services import ServicesDep

router = APIRouter(tags=["import"], route_class=FileRoute)
EXAMPLE = {
    "config": {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 128256,
    }
}


@router.post("/import", response_model=dict[str, Any], responses=IMPORT_PROBLEMS)
async def import_config(asked: Annotated[ImportRequest, Body(examples=[EXAMPLE])], services: ServicesDep) -> Response:
    """What a config.json says: architecture, weight plan, and where each field came from.

    Nothing is guessed in silence: a model_type that is not known is refused with `suggestions`, to be sent back as
    `read_as`; what no key and no class default gives is marked `assumed`. `scenario_model` is what to put under
    `model` in a scenario.
    """
    imported: Imported = await imported_from(asked, services.hub)
    return JsonResponse(await run_in_threadpool(import_document, imported))
