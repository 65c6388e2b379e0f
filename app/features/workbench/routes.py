"""Scenario in, Evaluation out: one, the same by query string, and a batch.

A scenario over axes: arrays of decode ceilings and expected times, streamed row by row.

The workbench: inputs left, answer right; a page, the same as a fragment, and the numbers behind its charts.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import orjson
from fastapi import APIRouter, Body, Request
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Strict, Tag, ValidationError, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from app.calc.memory.capacity import memory
from app.calc.sweep import DecodeSweep, decode_sweep
from app.catalog.catalog import Catalog
from app.features.links.saving import saving_context
from app.features.services import CatalogDep, services_of
from app.features.workbench import form, schemas
from app.features.workbench.answer_view import BINARY, AnswerView, answer_view
from app.features.workbench.charts.gallery import NAMES, chart_named
from app.features.workbench.export import csv_of, json_of
from app.features.workbench.undo import UNDO, presets, undo_of
from app.scenario.answer import answer
from app.scenario.document import document
from app.scenario.query import BY_NAME, unknown_names
from app.scenario.refusal import Refusal, ScenarioError, under
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario, default_scenario
from app.web import urls
from app.web.openapi import PROBLEMS
from app.web.problem import JsonResponse, ProblemError, StrictRoute, invalid, refusals_of
from app.web.query import answer_from, items_of, refuse_unknown
from app.web.templating import Templates, TemplatesDep, is_fragment

api = APIRouter(tags=["evaluate"], route_class=StrictRoute)

EXAMPLE = {
    "model": {"id": "llama-3.1-8b"},
    "hardware": {"id": "h100-sxm-80gb"},
    "workload": {"prompt_tokens": 1000, "output_tokens": 500, "concurrency": 1},
}


@api.post("/evaluate", response_model=schemas.Evaluation, responses=PROBLEMS)
async def evaluate(scenario: Annotated[Scenario, Body(examples=[EXAMPLE])], catalog: CatalogDep) -> Response:
    """Every number of one scenario, each with its derivation. A scenario that does not fit is a normal answer."""
    return JsonResponse(document(answer(scenario, catalog)))


@api.get("/evaluate", response_model=schemas.Evaluation, responses=PROBLEMS, openapi_extra=schemas.QUERY_PARAMETERS)
async def evaluate_query(request: Request, catalog: CatalogDep) -> Response:
    """The same by the query string of the workbench: put a page's query behind this address to get its numbers."""
    items = items_of(request.query_params)
    refuse_unknown(items, besides=("units", "undo"))
    return JsonResponse(document(answer_from(items, catalog)))


@api.post("/evaluate/batch", response_model=schemas.Batch, responses=PROBLEMS)
async def evaluate_batch(batch: schemas.BatchRequest, catalog: CatalogDep) -> Response:
    """Up to 1,000 scenarios, answered in their order; one that is not right gets its own problem."""
    results = await run_in_threadpool(lambda: [_one(raw, catalog) for raw in batch.scenarios])
    return JsonResponse({"results": results})


def _one(raw: dict[str, Any], catalog: Catalog) -> dict[str, Any]:
    try:
        return {"evaluation": document(answer(Scenario.model_validate(raw), catalog))}
    except (ValidationError, ScenarioError) as error:
        return {"problem": invalid(refusals_of(error)).document()}


MOST_ON_AXIS = 10_000
MOST_VALUES = 4_000_000

Metric = Literal["decode_step_s", "decode_tokens_per_s", "expected_step_s", "expected_tpot_s", "kv_bytes", "fits"]
UNITS: dict[Metric, str] = {
    "decode_step_s": "s",
    "decode_tokens_per_s": "tokens/s",
    "expected_step_s": "s",
    "expected_tpot_s": "s",
    "kv_bytes": "B",
    "fits": "1 or 0",
}
METRICS: tuple[Metric, ...] = tuple(UNITS)
UNCOMPUTED_AXES = ("tensor", "pipeline", "expert", "data")
Tokens = Annotated[int, Strict(), Field(ge=1, le=10**8)]


class Range(BaseModel):
    """Whole numbers from one end to the other, both included, repeated ones left out."""

    model_config = ConfigDict(extra="forbid")
    start: Tokens
    stop: Tokens
    steps: Annotated[int, Strict(), Field(ge=1, le=MOST_ON_AXIS)]
    scale: Literal["linear", "log"] = "linear"

    def values(self) -> list[int]:
        """The numbers of the range."""
        spread = np.geomspace if self.scale == "log" else np.linspace
        return [int(v) for v in np.unique(np.rint(spread(self.start, self.stop, self.steps)))]


# The tags name no field, so they are kept out of an error's path (see `app.web.problem`).
Axis = Annotated[
    Annotated[list[Tokens], Field(min_length=1, max_length=MOST_ON_AXIS), Tag("[list]")]
    | Annotated[Range, Tag("[range]")],
    Discriminator(lambda raw: "[range]" if isinstance(raw, (dict, Range)) else "[list]"),
]


class Axes(BaseModel):
    """What is varied. An axis left out stays at the scenario's value."""

    model_config = ConfigDict(extra="forbid")
    concurrency: Axis | None = Field(None, description="Sequences in a decode step.")
    context: Axis | None = Field(None, description="Tokens in each sequence's cache.")

    @model_validator(mode="before")
    @classmethod
    def _refuse_by_name(cls, raw: Any) -> Any:
        if isinstance(raw, dict):
            for name in UNCOMPUTED_AXES:
                if name in raw:
                    raise ValueError(f"The axis {name} is not computed: one accelerator holds the whole model.")
        return raw


class SweepRequest(BaseModel):
    """A scenario, axes and the numbers wanted: at most four million values."""

    model_config = ConfigDict(extra="forbid")
    scenario: Scenario
    axes: Axes
    metrics: Annotated[list[Metric], Field(min_length=1, max_length=len(METRICS))] = list(METRICS)


class SweepResponse(BaseModel):
    """Arrays of shape (concurrency, context)."""

    axes: dict[str, list[float]]
    shape: tuple[int, int]
    units: dict[str, str]
    metrics: dict[str, list[list[float]]]


@api.post("/sweep", response_model=SweepResponse, responses=PROBLEMS)
async def sweep(request: SweepRequest, catalog: CatalogDep) -> Response:
    """Decode ceilings and expected times over concurrency and context."""
    with under("scenario"):
        deployment = resolve(request.scenario, catalog).deployment
    concurrency = _values(request.axes.concurrency, memory(deployment).running_sequences)
    context = _values(request.axes.context, deployment.workload.mid_answer_tokens)
    metrics = tuple(dict.fromkeys(request.metrics))
    count = len(concurrency) * len(context) * len(metrics)
    if count > MOST_VALUES:
        raise ScenarioError([Refusal("axes", f"{count:,} values were asked for; {MOST_VALUES:,} are given at most.")])
    grid = await run_in_threadpool(
        decode_sweep, deployment, np.array(concurrency, dtype=float), np.array(context, dtype=float)
    )
    return StreamingResponse(_stream(grid, concurrency, context, metrics), media_type="application/json")


def _values(axis: list[int] | Range | None, default: float) -> Sequence[float]:
    if axis is None:
        return [default]
    return axis.values() if isinstance(axis, Range) else axis


def _stream(
    grid: DecodeSweep, concurrency: Sequence[float], context: Sequence[float], metrics: Sequence[Metric]
) -> Iterator[bytes]:
    """The response in pieces of a row, so that a million values never stand in memory as text."""
    head = {
        "axes": {"concurrency": concurrency, "context": context},
        "shape": [len(concurrency), len(context)],
        "units": {name: UNITS[name] for name in metrics},
    }
    yield orjson.dumps(head)[:-1] + b',"metrics":{'
    for number, name in enumerate(metrics):
        yield (b"," if number else b"") + orjson.dumps(name) + b":["
        array: NDArray[np.float64] = np.ascontiguousarray(
            np.broadcast_to(getattr(grid, name), (len(concurrency), len(context)))
        )
        for row in range(len(concurrency)):
            yield (b"," if row else b"") + orjson.dumps(array[row], option=orjson.OPT_SERIALIZE_NUMPY)
        yield b"]"
    yield b"}}"


VIEW_NAMES = ("units", UNDO)
pages = APIRouter()


@pages.get("/", include_in_schema=False)
async def workbench(request: Request, catalog: CatalogDep, templates: TemplatesDep) -> Response:
    """The workbench for the query's scenario; with nothing asked, for the default one."""
    items = items_of(request.query_params)
    binary = request.query_params.get("units") == BINARY
    asked = any(name in BY_NAME for name, _ in items)
    view: AnswerView | None = None
    try:
        answered = answer_from(items, catalog) if asked else answer(default_scenario(), catalog)
    except ScenarioError as error:
        filled = form.refused_form(items, default_scenario(), error)
    else:
        view, filled = answer_view(answered, binary=binary), form.form_of_answer(answered, catalog)
    undo = request.query_params.get(UNDO)
    context: dict[str, Any] = {
        "form": filled,
        "view": view,
        "binary": binary,
        "lists": request.app.state.form_lists,
        "presets": presets(),
        "undo": undo_of(undo, view.items) if view else None,
        "units_href": lambda units: urls.workbench(_in_units(view, units, undo)),
        **saving_context(services_of(request).settings),
        "ignored": unknown_names((name for name, _ in items), VIEW_NAMES),
        "twin": urls.evaluate_api(view.items) if view else None,
    }
    status = 200 if view else 422
    if is_fragment(request):
        return _fragment(request, templates, context, view, status)
    return templates.page("workbench", context, status)


def _in_units(view: AnswerView | None, units: str, undo: str | None) -> list[tuple[str, str]]:
    if view is None:
        return []
    return [*urls.scenario_items(view.answer.scenario, units), *([(UNDO, undo)] if undo else [])]


def _fragment(
    request: Request, templates: Templates, context: Mapping[str, Any], view: AnswerView | None, status: int
) -> Response:
    if view is None:
        return templates.partial("refusal", context, status)
    address = urls.workbench(view.items)
    current = request.headers.get("hx-current-url", "")
    headers = {} if current.endswith(address) else {"HX-Push-Url": address}
    return templates.partial("update", context, status, headers)


@pages.get("/export/{chart}.{extension}", include_in_schema=False)
async def export(chart: str, extension: str, request: Request, catalog: CatalogDep) -> Response:
    """The table behind one chart as CSV, or figure and table as JSON."""
    if chart not in NAMES or extension not in ("csv", "json"):
        raise ProblemError(404, "There is no such chart.")
    items = items_of(request.query_params)
    answered = answer_from(items, catalog)
    made = chart_named(chart, answered.evaluation, binary=request.query_params.get("units") == BINARY)
    if made is None:
        raise ProblemError(404, "This scenario has no such chart.")
    return csv_of(made, answered) if extension == "csv" else json_of(made, answered)
