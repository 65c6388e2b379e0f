"""The lesson: the story of the memory wall with live numbers, as a page and as the fragment that follows the inputs."""

from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.answer import Answer
from app.learn.lesson import CHAT, GLOSSARY, USUAL_CHAT_TOKENS, Lesson, chat_refusal, lesson
from app.pages.answer_view import subject
from app.pages.learn_form import (
    SHOWN,
    Asked,
    asked_of,
    carried,
    form_of_lesson,
    lists_of,
    refused_lesson_form,
    unseen_messages,
)
from app.refusal import ScenarioError
from app.scenario_query import unknown_names
from app.web import urls
from app.web.query import answer_from, items_of
from app.web.services import CatalogDep
from app.web.templating import Templates, is_fragment

VIEW_NAMES = (CHAT, "units", "undo")
router = APIRouter(include_in_schema=False)

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


@router.get("/learn")
async def learn(request: Request, catalog: CatalogDep) -> Response:
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
