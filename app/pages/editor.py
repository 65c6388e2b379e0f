"""The editor of a custom model: a form for every part of an architecture, its numbers beside it as they change."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import FormData
from starlette.responses import Response

from app.calc.dtypes import WeightFormat
from app.calc.parameters import count_parameters
from app.calc.weight_plan import convention
from app.default_scenario import DEFAULT_MODEL
from app.pages.architecture_view import ArchitectureView
from app.pages.editor_reading import Read, read_form
from app.pages.editor_start import carried_in, carried_of, start_from, workbench_items
from app.pages.editor_tree import MOST_FIELDS, Tree, change, leaf, nest, settle
from app.pages.editor_view import editor_form
from app.pages.saving import MAX_QUERY
from app.resolve_model import DEFAULT_NAME
from app.scenario_parts import Text
from app.scenario_query import MAX_CONFIG
from app.web import urls
from app.web.problem import refusals_of
from app.web.query import items_of
from app.web.services import CatalogDep
from app.web.templating import is_fragment, templates_of

WHOLE_EDITOR = "div#editor"
_NAME = TypeAdapter[str](Text)
router = APIRouter(include_in_schema=False)


@router.get("/models/custom")
async def start(request: Request, catalog: CatalogDep) -> Response:
    """The editor, filled in from a model of the catalog or from what an address of the workbench brings."""
    begun = start_from(items_of(request.query_params), catalog)
    texts = {"carried": urls.query_string(begun.carried), "obstacle": begun.obstacle, "began": begun.model_id}
    return _answer(request, begun.tree, texts, status=422 if begun.obstacle else 200)


@router.post("/models/custom")
async def edit(request: Request) -> Response:
    """The same with what was typed: a group added or removed, the fields of a kind just chosen, the numbers."""
    async with request.form(max_fields=MOST_FIELDS) as form:
        items = _texts_of(form)
    given = dict(items)
    tree = nest((name, text) for name, text in items if name not in ("do", "carried"))
    settle(tree, request.app.state.editor_samples)
    change(tree, given.get("do", ""))
    carried = urls.query_string(carried_in(given.get("carried", "")))
    return _answer(request, tree, {"carried": carried, "obstacle": ""})


def _texts_of(form: FormData) -> list[tuple[str, str]]:
    return [(name, text) for name, text in form.multi_items() if isinstance(text, str)]


def _answer(request: Request, tree: Tree, texts: Mapping[str, str], status: int = 200) -> Response:
    templates = templates_of(request)
    lists = request.app.state.form_lists
    name, errors = _name_of(tree)
    read = read_form(tree, name)
    weights = leaf(tree, "w") or WeightFormat.BF16.value
    if weights not in tuple(WeightFormat):
        errors["w"] = "Must be one of the list."
    errors = {**errors, **read.errors}
    context: dict[str, Any] = {
        "form": editor_form(tree, errors, lists.weights),
        "models": lists.models[:-1],
        "carried": texts["carried"],
        "obstacle": texts["obstacle"],
        "began": texts.get("began", DEFAULT_MODEL),
        "view": None,
        "twin": None,
    }
    address = ""
    if read.architecture is not None and not errors:
        context |= _numbers(read, name, WeightFormat(weights), texts["carried"])
        address = context["address"]
    status = 422 if errors else status
    if not is_fragment(request):
        return templates.page("editor", context, status)
    whole = request.headers.get("hx-target") == WHOLE_EDITOR
    part = "editor" if whole else "editor_update" if context["view"] else "editor_refusal"
    return templates.partial(part, context, status, {"HX-Replace-Url": address} if address else {})


def _name_of(tree: Tree) -> tuple[str, dict[str, str]]:
    try:
        return _NAME.validate_python(leaf(tree, "model_name").strip() or DEFAULT_NAME), {}
    except ValidationError as error:
        return DEFAULT_NAME, {"model_name": " ".join(refusal.message for refusal in refusals_of(error))}


def _numbers(read: Read, name: str, weights: WeightFormat, carried_text: str) -> Mapping[str, Any]:
    """What the page says beside a form with nothing wrong in it."""
    assert read.architecture is not None  # noqa: S101 - the caller has looked
    described = read.architecture
    carried = carried_of(carried_in(carried_text))
    description = json.dumps(read.document, separators=(",", ":"), ensure_ascii=False)
    items = workbench_items(name, description, weights, carried)
    # Letters beyond ASCII take up to nine characters of an address, so both lengths are looked at.
    lengths = ((len(description), MAX_CONFIG), (len(urls.query_string(items)), MAX_QUERY))
    too_long = next((pair for pair in lengths if pair[0] > pair[1]), None)
    fits = too_long is None
    return {
        "view": ArchitectureView(replace(described, mtp=None), convention(weights, described)),
        "mtp_params": count_parameters(described).mtp_params,
        "too_long": too_long,
        "workbench": urls.workbench(items) if fits else None,
        "twin": urls.evaluate_api(items) if fits else None,
        "address": urls.model_editor(items) if fits else "",
    }
