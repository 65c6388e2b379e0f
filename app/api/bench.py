"""Results of a benchmark in; runs beside their prediction and the user's own efficiency out."""

from typing import Annotated, Any

from fastapi import APIRouter, Body
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.api.problems import PROBLEMS
from app.bench.document import study_document
from app.bench.points import BenchError
from app.bench.study import NAME, study
from app.bench.texts import MOST_BYTES
from app.catalog.catalog import Catalog
from app.refusal import Refusal, under
from app.scenario import Scenario
from app.scenario_parts import Part, Text
from app.web.problem import JsonResponse, ProblemError, StrictRoute
from app.web.services import CatalogDep

router = APIRouter(tags=["benchmarks"], route_class=StrictRoute)
_RUN = (
    '{"max_concurrency": 8, "completed": 64, "total_input_tokens": 65536, "total_output_tokens": 16384, '
    '"request_throughput": 3.1, "total_token_throughput": 3968.0, "median_ttft_ms": 80.0, "median_tpot_ms": 9.8}'
)
EXAMPLE = {"text": _RUN, "scenario": {"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "h100-sxm-80gb"}}}


class BenchRequest(Part):
    """A file of results as text, and the stack that was measured."""

    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MOST_BYTES,
            description="Results of vllm bench serve, SGLang bench_serving, GuideLLM, AIPerf, GenAI-Perf (JSON or CSV) "
            "or llama-bench (json, jsonl, csv, md); several files one after the other.",
        ),
    ]
    scenario: Scenario = Field(description="What was measured; of its workload each run takes the place.")
    name: Text = Field(NAME, description="How the fitted calibration is called.")


@router.post("/benchmarks", response_model=dict[str, Any], responses=PROBLEMS)
async def benchmarks(asked: Annotated[BenchRequest, Body(examples=[EXAMPLE])], catalog: CatalogDep) -> Response:
    """Each run of a benchmark beside the prediction for its load, and the factors that bring the prediction nearest.

    `overlay` is beside the default, `calibrated` beside the fit, `scenario` carries the fit: send it on to /evaluate.
    `fit.held_out` tells what a fit to every other run is worth on the rest. Nothing is stored; host names, paths and
    prompts are dropped as the text is read.
    """
    return JsonResponse(await run_in_threadpool(_study, asked, catalog))


def _study(asked: BenchRequest, catalog: Catalog) -> dict[str, Any]:
    try:
        with under("scenario"):
            return study_document(study(asked.text.encode(), asked.scenario, catalog, asked.name))
    except BenchError as error:
        raise ProblemError(422, str(error), [Refusal("text", str(error))]) from error
