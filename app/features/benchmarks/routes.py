"""The form of the benchmark page: what was brought, and the scenario that it is laid over.

The benchmark page: results of a benchmark tool over the prediction, and the user's own efficiency fitted to them.

Results of a benchmark in; runs beside their prediction and the user's own efficiency out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import Field, TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.responses import Response

from app.catalog.catalog import Catalog
from app.features.benchmarks.points import MOST_BYTES, BenchError
from app.features.benchmarks.study import NAME, study, study_document
from app.features.benchmarks.view import BenchView
from app.features.links.saving import saving_context
from app.features.services import CatalogDep, Services, ServicesDep
from app.features.workbench.form import Form, FormLists, form_of_answer, refused_form
from app.scenario.answer import answer
from app.scenario.parts import Part, Text
from app.scenario.query import BY_NAME
from app.scenario.refusal import Refusal, ScenarioError, under
from app.scenario.scenario import Scenario, default_scenario
from app.web.openapi import PROBLEMS
from app.web.problem import JsonResponse, ProblemError, StrictRoute, refusals_of
from app.web.query import answer_from, items_of
from app.web.templating import templates_of

CHOSEN = ("model", "hw", "engine", "engine_version", "tp", "w", "kv", "under", "pp", "dp", "ep", "count", "hit")
"""Fields of the scenario that stand in the form; the others go along unseen."""
_MOST_FILES = 64
Items = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Brought:
    """What a browser sent: the text of all files, the name for the fit, the fields of the scenario."""

    text: str
    name: str
    items: Items
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class BenchForm:
    """The fields of the scenario with what is wrong with them, and the text and the name beside them."""

    scenario: Form
    brought: Brought
    errors: Mapping[str, str]

    def value(self, name: str) -> str:
        """What stands in a field."""
        own = {"text": self.brought.text, "name": self.brought.name}
        return own[name] if name in own else self.scenario.value(name)

    def error(self, name: str) -> str:
        """What is wrong with it; empty where nothing is."""
        return self.errors.get(name) or self.scenario.error(name)

    @property
    def is_refused(self) -> bool:
        return bool(self.errors or self.scenario.errors or self.scenario.general)

    @property
    def general(self) -> Sequence[str]:
        """What is wrong with no field, or with one that does not stand here."""
        hidden = [f"{name}: {self.scenario.error(name)}" for name in BY_NAME if name not in CHOSEN]
        return [*self.scenario.general, *(text for text in hidden if not text.endswith(": "))]

    def holds_value(self, names: Sequence[str], usual: Sequence[str] = ()) -> bool:
        """Whether one of them is filled with more than what is usual."""
        return self.scenario.holds_value(names, usual)

    @property
    def unseen(self) -> Items:
        """Fields that go along: a calibration does not, for the fit is on the default."""
        others = [name for name in BY_NAME if name not in CHOSEN and not name.startswith("cal_")]
        told = [(name, self.scenario.value(name)) for name in others]
        return [(name, value) for name, value in told if value or BY_NAME[name].empty_is_null]


async def brought_by(form: FormData) -> Brought:
    """What was posted; chosen files take the place of the text, one after the other."""
    texts = {name: value for name, value in form.multi_items() if isinstance(value, str)}
    items = [(name, value) for name, value in form.multi_items() if name in BY_NAME and isinstance(value, str)]
    files = [file for file in form.getlist("file") if isinstance(file, UploadFile) and file.size]
    text, name = texts.get("text", ""), texts.get("name", "")
    if len(files) > _MOST_FILES:
        return Brought(text, name, items, f"At most {_MOST_FILES} files at a time.")
    parts, room = [], MOST_BYTES + 1
    for file in files:
        part = await file.read(room)
        room -= len(part)
        parts.append(_decoded(part))
    return Brought("\n".join(parts) if parts else text, name, items)


def _decoded(part: bytes) -> str:
    """A file as text, as far as it is one: what is none is for the reader to refuse, by what it then looks like."""
    wide = part.startswith((b"\xff\xfe", b"\xfe\xff"))
    return part.decode("utf-16" if wide else "utf-8", "replace").lstrip("\ufeff")


def opened(items: Items, catalog: Catalog) -> BenchForm:
    """The form for a scenario that an address carries; with nothing asked, for the default one."""
    asked = [item for item in items if item[0] in BY_NAME]
    form, _ = scenario_form(asked, catalog)
    return BenchForm(form, Brought("", NAME, asked), {})


def scenario_form(items: Items, catalog: Catalog) -> tuple[Form, Scenario | None]:
    """The form of the items, and the scenario where they make one."""
    try:
        answered = answer_from(items, catalog) if items else answer(default_scenario(), catalog)
    except ScenarioError as error:
        return refused_form(items, default_scenario(), error), None
    return form_of_answer(answered, catalog), answered.scenario


NOTHING = "Paste the results of a benchmark here, or choose their files."
_NAME = TypeAdapter[str](Text)
pages = APIRouter(include_in_schema=False)


@pages.get("/benchmarks")
async def start(request: Request, services: ServicesDep) -> Response:
    """The empty form, for the scenario of the query."""
    form = await run_in_threadpool(opened, items_of(request.query_params), services.catalog)
    return _page(request, services, form, None, 422 if form.is_refused else 200)


@pages.post("/benchmarks")
async def lay_over(request: Request, services: ServicesDep) -> Response:
    """The posted results beside their prediction. They are kept in the form and nowhere else."""
    async with request.form(max_part_size=services.settings.max_batch_body_bytes) as posted:
        brought = await brought_by(posted)
    form, view = await run_in_threadpool(_studied, brought, services.catalog)
    return _page(request, services, form, view, 200 if view else 422)


def _studied(brought: Brought, catalog: Catalog) -> tuple[BenchForm, BenchView | None]:
    """The form with what is wrong at its fields, and the view where nothing is."""
    fields, scenario = scenario_form(brought.items, catalog)
    errors: dict[str, str] = {}
    name = NAME
    try:
        name = _NAME.validate_python(brought.name.strip() or NAME)
    except ValidationError as error:
        errors["name"] = refusals_of(error)[0].message
    if brought.problem is not None:
        errors["text"] = brought.problem
    elif not brought.text.strip():
        errors["text"] = NOTHING
    view = None
    if scenario is not None and not errors:
        try:
            view = BenchView(study(brought.text.encode(), scenario, catalog, name))
        except (BenchError, ScenarioError, UnicodeEncodeError) as error:
            errors["text"] = str(error)
    return BenchForm(fields, brought, errors), view


def _page(request: Request, services: Services, form: BenchForm, view: BenchView | None, status: int) -> Response:
    lists: FormLists = request.app.state.form_lists
    context: dict[str, Any] = {
        "form": form,
        "lists": lists,
        "view": view,
        **saving_context(services.settings),
    }
    return templates_of(request).page("bench", context, status)


api = APIRouter(tags=["benchmarks"], route_class=StrictRoute)
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


@api.post("/benchmarks", response_model=dict[str, Any], responses=PROBLEMS)
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
