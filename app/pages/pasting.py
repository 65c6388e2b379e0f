"""The paste page: a start-up log or launch command in, its scenario and logged beside predicted out; nothing stored."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.responses import Response

from app.answer import answer
from app.catalog.catalog import Catalog
from app.pages.form import Form
from app.pages.form_lists import FormLists, Group
from app.pages.paste_view import PasteView
from app.pages.saving import saving_context
from app.paste import MOST_TEXT, PasteError, PasteRequest, read_paste
from app.scenario_query import name_of
from app.web.problem import refusals_of
from app.web.services import Services, ServicesDep
from app.web.templating import templates_of

KINDS = (("", "The text decides"), ("log", "A start-up log"), ("command", "A launch command or manifest"))
FIELDS = ("text", "kind", "model", "hw")
_TOO_LONG = "Is longer than 1 MiB. Paste the start of the log: what the engine prints until it serves."
_BY_THE_TEXT = Group("From the text", (("", "as the text says", ""),))
router = APIRouter(include_in_schema=False)


@router.get("/paste")
async def start(request: Request, services: ServicesDep) -> Response:
    """The empty form."""
    return _page(request, services, Form({}, {}, ()), None, 200)


@router.post("/paste")
async def read(request: Request, services: ServicesDep) -> Response:
    """What was read of the posted text. The text is kept in the form and nowhere else."""
    async with request.form(max_part_size=services.settings.max_batch_body_bytes) as form:
        typed = await _typed(form)
    view, errors = await run_in_threadpool(_read, typed, services.catalog)
    refused = bool(errors) and (view is None or view.answer is None)
    return _page(request, services, Form(typed, errors, ()), view, 422 if refused and view is None else 200)


async def _typed(form: FormData) -> dict[str, str]:
    """Texts by field; a chosen file takes the place of the text."""
    typed = {name: text for name in FIELDS if isinstance(text := form.get(name), str)}
    file = form.get("file")
    if isinstance(file, UploadFile) and file.size:
        typed["text"] = (await file.read(MOST_TEXT + 1)).decode("utf-8", "replace")
    return typed


def _read(typed: Mapping[str, str], catalog: Catalog) -> tuple[PasteView | None, dict[str, str]]:
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
