"""A start-up log or launch command in, a scenario out; and a scenario in, its launch commands out."""

from typing import Annotated, Any

from fastapi import APIRouter, Body
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.answer import answer
from app.api.problems import IMPORT_PROBLEMS, PROBLEMS
from app.catalog.catalog import Catalog
from app.launch.variants import launch_variants, why_no_variant
from app.paste import PasteError, PasteRequest, read_paste
from app.paste_document import launch_document, paste_document
from app.refusal import Refusal
from app.resolve import resolve
from app.scenario import Scenario
from app.web.problem import FileRoute, JsonResponse, ProblemError, StrictRoute
from app.web.services import CatalogDep

router = APIRouter(tags=["paste"], route_class=FileRoute)
launching = APIRouter(tags=["paste"], route_class=StrictRoute)
EXAMPLE = {"text": "vllm serve meta-llama/Llama-3.1-8B --max-model-len 16384", "scenario": {"hardware": {"id": "l40s"}}}


@router.post("/paste", response_model=dict[str, Any], responses=IMPORT_PROBLEMS)
async def paste(asked: Annotated[PasteRequest, Body(examples=[EXAMPLE])], catalog: CatalogDep) -> Response:
    """What a start-up log (vLLM, SGLang, TensorRT-LLM, llama.cpp) or a launch command says, as a scenario.

    `scenario` is null where `problems` say what is missing, most often the card; send it under `scenario` along with
    the text. `comparison` holds logged against predicted, with the reason of each difference. Nothing is stored, and
    nothing textual of the log comes back: names, hosts and paths are dropped as it is read.
    """
    return JsonResponse(await run_in_threadpool(_read, asked, catalog))


def _read(asked: PasteRequest, catalog: Catalog) -> dict[str, Any]:
    try:
        pasted = read_paste(asked, catalog)
    except PasteError as error:
        raise ProblemError(422, str(error), [Refusal("text", str(error))]) from error
    comparison = answer(pasted.scenario, catalog).evaluation.comparison if pasted.scenario else ()
    return paste_document(pasted, comparison)


@launching.post("/launch", response_model=dict[str, Any], responses=PROBLEMS)
async def launch(scenario: Scenario, catalog: CatalogDep) -> Response:
    """The commands that launch a scenario: shell, container, Kubernetes, llm-d values; flags of a named release."""
    resolved = resolve(scenario, catalog).scenario
    return JsonResponse(launch_document(launch_variants(resolved, catalog), why_no_variant(resolved)))
