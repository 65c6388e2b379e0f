"""The lesson by HTTP: its chapters with every number, for programs that teach."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.api import schemas
from app.api.learn_schema import LessonAnswer
from app.api.problems import PROBLEMS
from app.catalog.catalog import Catalog
from app.learn.lesson import CHAT, USUAL_CHAT_TOKENS, Lesson, chat_refusal, lesson
from app.learn.number import LiveNumber
from app.learn.query import with_usual
from app.refusal import Refusal, ScenarioError
from app.web import urls
from app.web.problem import JsonResponse
from app.web.query import answer_from, items_of, refuse_unknown
from app.web.services import CatalogDep

router = APIRouter(tags=["evaluate"])

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


@router.get("/learn", response_model=LessonAnswer, responses={422: PROBLEMS[422]}, openapi_extra=_documented())
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
