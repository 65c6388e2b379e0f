"""What the paste page shows of a reading: what was told, what was left, and the answer that it makes.

The paste page: a start-up log or launch command in, its scenario and logged beside predicted out; nothing stored.

The launch page: every command, manifest and values file that starts a scenario.

A start-up log or launch command in, a scenario out; and a scenario in, its launch commands out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.responses import Response

from app.calc.quantity import quantity
from app.catalog.catalog import Catalog
from app.engine_io.launch.findings import CommandReading
from app.engine_io.launch.variants import launch_variants, why_no_variant
from app.engine_io.logs.findings import LogReading
from app.engine_io.paste import MOST_TEXT, Pasted, PasteError, PasteRequest, launch_document, paste_document, read_paste
from app.features.links.saving import saving_context
from app.features.services import CatalogDep, Services, ServicesDep
from app.features.workbench.answer_view import AnswerView, answer_view, subject
from app.features.workbench.form import Form, FormLists, Group
from app.scenario.answer import Answer, answer
from app.scenario.query import name_of
from app.scenario.refusal import Refusal, ScenarioError
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario
from app.web import urls
from app.web.openapi import IMPORT_PROBLEMS, PROBLEMS
from app.web.problem import FileRoute, JsonResponse, ProblemError, StrictRoute, invalid, refusals_of
from app.web.query import answer_from, items_of
from app.web.templating import TemplatesDep, templates_of

DIGITS = 4


@dataclass(frozen=True, slots=True)
class ToldRow:
    """A field that the text fills: who said it, which field, its value."""

    source: str
    path: str
    value: str


class PasteView:
    """Everything the template reads of one pasted text."""

    def __init__(self, pasted: Pasted, answered: Answer | None, catalog: Catalog) -> None:
        self.pasted, self.answer = pasted, answered
        self._catalog = catalog
        self.answer_view: AnswerView | None = answer_view(answered, binary=True) if answered else None

    @property
    def is_log(self) -> bool:
        """A log, and not a command."""
        return isinstance(self.pasted.reading, LogReading)

    @property
    def title(self) -> str:
        """What it is, in a line."""
        reading = self.pasted.reading
        engine = self._catalog.engines[reading.engine].name if reading.engine in self._catalog.engines else ""
        if isinstance(reading, LogReading):
            return f"A start-up log of {reading.engine_name}{f' {reading.release}' if reading.release else ''}"
        return f"A launch of {engine or reading.engine}, {reading.variant}"

    @property
    def told(self) -> Sequence[ToldRow]:
        """Fields of the scenario, as they were told."""
        reading = self.pasted.reading
        if isinstance(reading, CommandReading):
            return [ToldRow(one.flag, one.path, _value(one.path, one.value)) for one in reading.told]
        return [ToldRow(one.label, one.path, _value(one.path, one.value)) for one in reading.told]

    @property
    def left(self) -> Sequence[tuple[str, str]]:
        """Flags that set nothing, each with the reason."""
        reading = self.pasted.reading
        return [(one.flag, one.reason.value) for one in reading.unread] if isinstance(reading, CommandReading) else []

    @property
    def notes(self) -> Sequence[str]:
        """What contradicts itself in a log."""
        reading = self.pasted.reading
        return reading.notes if isinstance(reading, LogReading) else ()

    @property
    def candidates(self) -> Sequence[tuple[str, str]]:
        """Cards with about the memory that the log says, by id and name."""
        reading = self.pasted.reading
        if not isinstance(reading, LogReading):
            return []
        records = self._catalog.accelerators
        return [(id_, records[id_].name) for id_ in reading.accelerator_candidates if id_ in records][:8]


def _value(path: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) and path.endswith("_bytes"):
        return quantity(float(value), "B", DIGITS, binary=True)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


KINDS = (("", "The text decides"), ("log", "A start-up log"), ("command", "A launch command or manifest"))
FIELDS = ("text", "kind", "model", "hw")
_TOO_LONG = "Is longer than 1 MiB. Paste the start of the log: what the engine prints until it serves."
_BY_THE_TEXT = Group("From the text", (("", "as the text says", ""),))
pages = APIRouter(include_in_schema=False)


@pages.get("/paste")
async def start(request: Request, services: ServicesDep) -> Response:
    """The empty form."""
    return _page(request, services, Form({}, {}, ()), None, 200)


@pages.post("/paste")
async def read(request: Request, services: ServicesDep) -> Response:
    """What was read of the posted text. The text is kept in the form and nowhere else."""
    async with request.form(max_part_size=services.settings.max_batch_body_bytes) as form:
        typed = await _typed(form)
    view, errors = await run_in_threadpool(_pasting_read, typed, services.catalog)
    refused = bool(errors) and (view is None or view.answer is None)
    return _page(request, services, Form(typed, errors, ()), view, 422 if refused and view is None else 200)


async def _typed(form: FormData) -> dict[str, str]:
    """Texts by field; a chosen file takes the place of the text."""
    typed = {name: text for name in FIELDS if isinstance(text := form.get(name), str)}
    file = form.get("file")
    if isinstance(file, UploadFile) and file.size:
        typed["text"] = (await file.read(MOST_TEXT + 1)).decode("utf-8", "replace")
    return typed


def _pasting_read(typed: Mapping[str, str], catalog: Catalog) -> tuple[PasteView | None, dict[str, str]]:
    """The reading and its messages by field."""
    text = typed.get("text", "")
    if not text.strip():
        return None, {"text": "Paste a start-up log or a launch command here."}
    if len(text) > MOST_TEXT:
        return None, {"text": _TOO_LONG}
    chosen = {
        part: {"id": typed[name].strip()}
        for name, part in (("model", "model"), ("hw", "hardware"))
        if typed.get(name, "").strip()
    }
    try:
        asked = PasteRequest.model_validate({"text": text, "kind": typed.get("kind") or None, "scenario": chosen})
        pasted = read_paste(asked, catalog)
    except PasteError as error:
        return None, {"text": str(error)}
    except ValidationError as error:
        return None, {"text" if r.path != "kind" else "kind": r.message for r in refusals_of(error)}
    answered = answer(pasted.scenario, catalog) if pasted.scenario is not None else None
    errors: dict[str, str] = {}
    for refusal in pasted.refusals:
        name = name_of(refusal.path)
        field = name if name in ("model", "hw") else "text"
        message = refusal.message if field != "text" else f"{refusal.path}: {refusal.message}"
        errors[field] = f"{errors[field]} {message}" if field in errors else message
    return PasteView(pasted, answered, catalog), errors


def _page(request: Request, services: Services, form: Form, view: PasteView | None, status: int) -> Response:
    lists: FormLists = request.app.state.form_lists  # the last group of each is one's own, which a text cannot be
    context: dict[str, Any] = {
        "form": form,
        "paste": view,
        "view": view.answer_view if view is not None else None,
        "kinds": KINDS,
        "unnamed_models": (_BY_THE_TEXT, *lists.models[:-1]),
        "unnamed_cards": (_BY_THE_TEXT, *lists.accelerators[:-1]),
        **saving_context(services.settings),
    }
    return templates_of(request).page("paste", context, status)


@pages.get("/launch")
async def launch_page(request: Request, catalog: CatalogDep, templates: TemplatesDep) -> Response:
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


api = APIRouter(tags=["paste"], route_class=FileRoute)
launching = APIRouter(tags=["paste"], route_class=StrictRoute)
EXAMPLE = {"text": "vllm serve meta-llama/Llama-3.1-8B --max-model-len 16384", "scenario": {"hardware": {"id": "l40s"}}}


@api.post("/paste", response_model=dict[str, Any], responses=IMPORT_PROBLEMS)
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
