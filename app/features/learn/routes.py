"""The query as the lesson reads it: that of the workbench, with a usual model and card for who brings none.

The lesson's inputs: a strip of six, one in the text, and all other fields of the scenario carried along unseen.

The lesson: the story of the memory wall with live numbers, as a page and as the fragment that follows the inputs.

The lesson by HTTP: its chapters with every number, for programs that teach.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.catalog.catalog import Catalog
from app.features.learn.lesson import CHAT, GLOSSARY, USUAL_CHAT_TOKENS, Lesson, chat_refusal, lesson
from app.features.learn.number import LiveNumber
from app.features.learn.schemas import LessonAnswer
from app.features.services import CatalogDep
from app.features.workbench import schemas
from app.features.workbench.answer_view import subject
from app.features.workbench.form import Form, FormLists, Group, form_of_answer, refused_form
from app.scenario.answer import Answer
from app.scenario.query import BY_NAME, CUSTOM, unknown_names
from app.scenario.refusal import Refusal, ScenarioError
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario, default_scenario
from app.web import urls
from app.web.openapi import PROBLEMS
from app.web.problem import JsonResponse
from app.web.query import answer_from, items_of, refuse_unknown
from app.web.templating import Templates, is_fragment
from app.web.urls import Items

USUAL = (("model", "llama-3.1-8b"), ("hw", "h100-sxm-80gb"))
"""The reference case of the story."""


def with_usual(items: Items) -> list[tuple[str, str]]:
    """The items, with the usual model and accelerator where they name none."""
    named = {name for name, _ in items}
    return [*(item for item in USUAL if item[0] not in named), *items]


SHOWN = ("model", "hw", "tp", "prompt", "out", "batch", CHAT)
OWN = "Your own"


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as the lesson reads it: items of a scenario, and the conversation's length as it was typed."""

    items: Sequence[tuple[str, str]]
    chat: str


def asked_of(items: Items) -> Asked:
    """The query with the usual model and card where it names none."""
    found = with_usual([(name, value) for name, value in items if name in BY_NAME])
    chat = next((value for name, value in reversed(items) if name == CHAT), "")
    return Asked(found, chat.strip())


def form_of_lesson(answered: Answer, chat_tokens: int, catalog: Catalog) -> Form:
    """The form behind a lesson. What follows from the model stands empty, so that another model brings its own."""
    form = form_of_answer(answered, catalog)
    following = dict.fromkeys(_following_formats(answered.scenario, catalog), "")
    return replace(form, values={**form.values, **following, CHAT: str(chat_tokens)})


def refused_lesson_form(asked: Asked, error: ScenarioError | None, chat_message: str | None) -> Form:
    """The form as it was typed, with each refusal at its field."""
    form = refused_form(asked.items, default_scenario(), error or ScenarioError([]))
    errors = dict(form.errors) | ({CHAT: chat_message} if chat_message else {})
    return replace(form, values={**form.values, CHAT: asked.chat or str(USUAL_CHAT_TOKENS)}, errors=errors)


def carried(form: Form) -> list[tuple[str, str]]:
    """The fields that the strip does not show, for the form to send all the same."""
    return [(name, form.value(name)) for name in BY_NAME if name not in SHOWN and form.value(name)]


def unseen_messages(form: Form) -> list[str]:
    """What is wrong with fields that the strip does not show, and with none in particular."""
    unseen = [f"{name}: {text}" for name, text in form.errors.items() if name not in SHOWN]
    return [*form.general, *unseen]


def lists_of(lists: FormLists, form: Form) -> Mapping[str, tuple[Group, ...]]:
    """Models and accelerators to choose from; one's own only where it is chosen already, for here is no place to say
    what it is."""

    def kept(groups: tuple[Group, ...], name: str) -> tuple[Group, ...]:
        return tuple(group for group in groups if group.label != OWN or form.value(name) == CUSTOM)

    return {"models": kept(lists.models, "model"), "accelerators": kept(lists.accelerators, "hw")}


def _following_formats(scenario: Scenario, catalog: Catalog) -> list[str]:
    """Weights and arithmetic, where they are what would be taken if nothing were said."""
    found = []
    for name, key in (("w", "weights"), ("compute", "compute")):
        left_open = scenario.precision.model_copy(update={key: None})
        try:
            usual = resolve(scenario.model_copy(update={"precision": left_open}), catalog).scenario.precision
        except ScenarioError:
            continue
        if getattr(usual, key) == getattr(scenario.precision, key):
            found.append(name)
    return found


VIEW_NAMES = (CHAT, "units", "undo")
pages = APIRouter(include_in_schema=False)

CONTENTS = (
    ("request", "One request"),
    ("prefill", "Prefill"),
    ("decode", "Decode"),
    ("ridge", "The wall in one number"),
    ("batching", "Batching"),
    ("cache", "The cache"),
    ("measuring", "Measuring"),
    ("doors", "The doors"),
    ("engines", "The engines"),
    ("cards", "Newer cards"),
    ("beliefs", "Five wrong beliefs"),
    (GLOSSARY, "Glossary"),
)


@pages.get("/learn")
async def learn_page(request: Request, catalog: CatalogDep) -> Response:
    """The lesson for the query's scenario; with nothing asked, for the usual one."""
    templates: Templates = request.app.state.templates
    items = items_of(request.query_params)
    asked = asked_of(items)
    chat_message, refusal = chat_refusal(asked.chat), None
    answered: Answer | None = None
    try:
        answered = answer_from(asked.items, catalog)
    except ScenarioError as error:
        refusal = error
    context: dict[str, Any] = {
        "ignored": unknown_names((name for name, _ in items), VIEW_NAMES),
        "contents": CONTENTS,
        "chapters": [id_ for id_, _ in CONTENTS],
        "titles": dict(CONTENTS),
        "shown": SHOWN,
    }
    if answered is None or chat_message is not None:
        return _refused(request, templates, context, asked, refusal, chat_message)
    chat_tokens = int(asked.chat or USUAL_CHAT_TOKENS)
    told = await run_in_threadpool(lesson, answered, chat_tokens, catalog)
    address = [*urls.scenario_items(answered.scenario), (CHAT, str(chat_tokens))]
    context |= {**_of_lesson(told, answered), "twin": urls.learn_api(address)}
    context |= _of_form(request, form=form_of_lesson(answered, chat_tokens, catalog))
    if is_fragment(request):
        return templates.partial("learn_update", context, 200, {"HX-Replace-Url": _followed(request, address)})
    return templates.page("learn", context)


def _refused(
    request: Request,
    templates: Templates,
    context: dict[str, Any],
    asked: Asked,
    refusal: ScenarioError | None,
    chat_message: str | None,
) -> Response:
    """Messages at their fields, and no lesson that could be taken for that of what was typed."""
    context |= _of_form(request, form=refused_lesson_form(asked, refusal, chat_message))
    context |= {"lesson": None, "twin": None}
    if is_fragment(request):
        return templates.partial("learn_refusal", context, 422)
    return templates.page("learn", context, 422)


def _of_form(request: Request, form: Any) -> dict[str, Any]:
    return {
        "form": form,
        "carried": carried(form),
        "lists": lists_of(request.app.state.form_lists, form),
        "unseen_messages": unseen_messages(form),
    }


def _of_lesson(told: Lesson, answered: Answer) -> dict[str, Any]:
    deployment = answered.evaluation.deployment
    gpus = deployment.split.gpus
    name = deployment.accelerator.name
    machine = name if gpus == 1 else f"{gpus:,} × {name}"
    return {
        "lesson": told,
        "subject": f"{deployment.architecture.name} on {machine}",
        "machine": machine,
        "card": name,
        "gpus": gpus,
        "replicas": deployment.replicas,
        "caption": _caption(answered),
    }


def _followed(request: Request, address: urls.Items) -> str:
    """The address of what is shown now, at the chapter where the reader is."""
    chapter = urlsplit(request.headers.get("hx-current-url", "")).fragment
    known = {id_ for id_, _ in CONTENTS}
    return urls.learn(address) + (f"#{chapter}" if chapter in known else "")


def _caption(answered: Answer) -> str:
    """What a picture of a chart says about itself."""
    versions = f"formulas {answered.formula_version}, catalog {answered.catalog_version}"
    return f"{subject(answered)} · Tokenroof {versions}"


api = APIRouter(tags=["evaluate"])

_CHAT_PARAMETER = {
    "name": CHAT,
    "in": "query",
    "required": False,
    "description": "Tokens of one conversation in the chapter of the cache; 4,096 where it is left out.",
    "schema": {"type": "integer", "minimum": 2, "default": USUAL_CHAT_TOKENS},
}


def _documented() -> dict[str, Any]:
    """The parameters of a scenario, none of them needed here, and the one that the lesson adds."""
    parameters = [{**parameter, "required": False} for parameter in schemas.QUERY_PARAMETERS["parameters"]]
    return {"parameters": [*parameters, _CHAT_PARAMETER]}


@api.get("/learn", response_model=LessonAnswer, responses={422: PROBLEMS[422]}, openapi_extra=_documented())
async def learn(request: Request, catalog: CatalogDep) -> Response:
    """The story of the memory wall for one scenario: chapters, and every number in them with its source.

    The query is that of the workbench; a model or an accelerator that it does not name is the usual one.
    """
    items = items_of(request.query_params)
    refuse_unknown(items, besides=(CHAT, "units", "undo"))
    typed = next((value.strip() for name, value in reversed(items) if name == CHAT), "")
    message = chat_refusal(typed)
    if message is not None:
        raise ScenarioError([Refusal(CHAT, message)])
    told = await run_in_threadpool(_lesson, with_usual(items), int(typed or USUAL_CHAT_TOKENS), catalog)
    return JsonResponse(_document(told))


def _lesson(items: urls.Items, chat_tokens: int, catalog: Catalog) -> Lesson:
    return lesson(answer_from(items, catalog), chat_tokens, catalog)


def _document(told: Lesson) -> dict[str, Any]:
    return {
        "formula_version": told.cases.asked.answered.formula_version,
        "catalog_version": told.cases.asked.answered.catalog_version,
        "chat_tokens": told.cases.chat_tokens,
        "cases": {
            key: {"words": case.words, "evaluate": urls.evaluate_api(urls.scenario_items(case.scenario))}
            for key, case in told.behind.items()
        },
        "chapters": [
            {
                "id": chapter.id,
                "title": chapter.title,
                "workbench": chapter.workbench,
                "numbers": [_number(number) for number in chapter.numbers.values()],
            }
            for chapter in told.chapters
        ],
        "published": [{**_number(fact.number), "url": fact.url or None} for fact in told.published.facts.values()],
        "words": [
            {"id": word.id, "word": word.word, "short": word.short or None, "meaning": word.meaning}
            for word in told.words.values()
        ],
    }


def _number(number: LiveNumber) -> dict[str, Any]:
    return {
        "id": number.id,
        "label": number.label,
        "value": number.value,
        "unit": number.plain_unit,
        "text": number.text,
        "source": number.source,
        "case": number.case or None,
    }
