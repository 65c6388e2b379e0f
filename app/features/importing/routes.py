"""The import page: a config.json pasted, dropped or fetched, and the architecture as it was read.

A configuration in, the architecture that was read of it out: field by field, with what was assumed.
"""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.responses import Response

from app.checkpoint.keys import Suggestion
from app.checkpoint.text import StrictJsonError, loads, object_without_twins
from app.features.importing.hub import HubError
from app.features.importing.read import Imported, ImportRequest, UnreadableError, imported_from
from app.features.importing.view import ImportView, Way, import_document
from app.features.links.saving import saving_context
from app.features.services import Services, ServicesDep
from app.features.workbench.form import Form
from app.web.openapi import IMPORT_PROBLEMS
from app.web.problem import FileRoute, JsonResponse, refusals_of
from app.web.query import items_of
from app.web.templating import templates_of

FIELDS = ("config", "quant", "model_name", "read_as", "hub")
# A file's field beside the field of its text.
FILES = {"config_file": "config", "quant_file": "quant"}
MOST_TEXT = 1_048_576
_NOT_FINITE = re.compile(r"\b(NaN|Infinity)\b")
_FIELD_OF = {"config": "config", "quantization": "quant", "name": "model_name", "read_as": "read_as", "hub": "hub"}
pages = APIRouter(include_in_schema=False)


@pages.get("/import")
async def start(request: Request, services: ServicesDep) -> Response:
    """The empty form; or, for an address that brings a configuration or a name on the hub, what was read of it."""
    typed = {name: text for name, text in items_of(request.query_params) if name in FIELDS}
    return await _answer(request, services, typed)


@pages.post("/import")
async def read(request: Request, services: ServicesDep) -> Response:
    """What was read of a posted configuration, pasted or chosen as a file."""
    most = services.settings.max_batch_body_bytes
    async with request.form(max_part_size=most) as form:
        typed, errors = await _typed(form)
    return await _answer(request, services, typed, errors)


async def _typed(form: FormData) -> tuple[dict[str, str], dict[str, str]]:
    """Texts by field, a chosen file in the place of its text; and what is wrong with the files."""
    typed = {name: text for name in FIELDS if isinstance(text := form.get(name), str)}
    errors: dict[str, str] = {}
    for name, field in FILES.items():
        file = form.get(name)
        if isinstance(file, UploadFile) and file.size:
            try:
                typed[field] = (await file.read(MOST_TEXT + 1)).decode("utf-8")
            except UnicodeDecodeError:
                errors[field] = "The file is no text: a config.json is UTF-8."
    accepted = form.get("accept")
    if isinstance(accepted, str) and accepted:
        typed["read_as"] = accepted
    return typed, errors


async def _answer(
    request: Request, services: Services, typed: Mapping[str, str], errors: Mapping[str, str] | None = None
) -> Response:
    asked, found = _asked(typed)
    errors = {**found, **(errors or {})}
    view: ImportView | None = None
    offers: tuple[Suggestion, ...] = ()
    status = 422 if errors else 200
    if asked is not None and not errors:
        try:
            view = ImportView(await imported_from(asked, services.hub))
            # The ways on are found by reading again: not while others wait for this loop.
            await run_in_threadpool(getattr, view, "onward")
        except UnreadableError as error:
            errors = {_field_of(error.errors[0].path): _told(error.errors[0].path, error.errors[0].message)}
            offers, status = error.suggestions, error.status
        except HubError as error:
            errors, status = {"hub": error.detail}, error.status
    context: dict[str, Any] = {
        "form": Form(typed, errors, ()),
        "view": view,
        "offers": offers,
        "ways": Way,
        "hub_allowed": services.hub.is_allowed,
        **saving_context(services.settings),
    }
    return templates_of(request).page("import", context, status)


def _asked(typed: Mapping[str, str]) -> tuple[ImportRequest | None, dict[str, str]]:
    """The request that the texts make, or what is wrong with them; neither where nothing was asked yet."""
    errors: dict[str, str] = {}
    document: dict[str, Any] = {}
    for field, key in (("config", "config"), ("quant", "quantization")):
        text = typed.get(field, "").strip()
        if not text:
            continue
        try:
            document[key] = _object(text)
        except ValueError as error:
            errors[field] = str(error)
    hub = typed.get("hub", "").strip()
    if hub and "config" not in document and "config" not in errors:
        document["hub"] = hub
    document |= {
        key: typed[field].strip()
        for field, key in (("model_name", "name"), ("read_as", "read_as"))
        if typed.get(field, "").strip()
    }
    if not errors and not document:
        return None, {"config": "Paste a config.json here."} if "config" in typed and not hub else {}
    if errors:
        return None, errors
    if "config" not in document and "hub" not in document:
        return None, {"config": "Paste a config.json here."}
    try:
        return ImportRequest.model_validate(document), {}
    except ValidationError as error:
        for refusal in refusals_of(error):
            errors[_field_of(refusal.path)] = refusal.message
        return None, errors


def _object(text: str) -> dict[str, Any]:
    if len(text) > MOST_TEXT:
        raise ValueError("Is too long.")
    try:
        value = loads(_without_infinities(text))
    except StrictJsonError as error:
        raise ValueError(f"Is no JSON that is read here: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("Must be a JSON object: the contents of a config.json.")
    return value


def _without_infinities(text: str) -> str:
    """The text with null for NaN and Infinity, which are no JSON and yet stand in published files (as limits)."""
    if not _NOT_FINITE.search(text):
        return text
    try:
        return json.dumps(json.loads(text, parse_constant=lambda _: None, object_pairs_hook=object_without_twins))
    except (ValueError, RecursionError):
        return text  # refused for what else is wrong with it


def _field_of(path: str) -> str:
    return _FIELD_OF.get(path.partition(".")[0], "config")


def _told(path: str, message: str) -> str:
    key = path.partition(".")[2]
    return f"{key}: {message}" if key else message[:1].upper() + message[1:]


api = APIRouter(tags=["import"], route_class=FileRoute)
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


@api.post("/import", response_model=dict[str, Any], responses=IMPORT_PROBLEMS)
async def import_config(asked: Annotated[ImportRequest, Body(examples=[EXAMPLE])], services: ServicesDep) -> Response:
    """What a config.json says: architecture, weight plan, and where each field came from.

    Nothing is guessed in silence: a model_type that is not known is refused with `suggestions`, to be sent back as
    `read_as`; what no key and no class default gives is marked `assumed`. `scenario_model` is what to put under
    `model` in a scenario.
    """
    imported: Imported = await imported_from(asked, services.hub)
    return JsonResponse(await run_in_threadpool(import_document, imported))
