"""The editor of a custom model: a form for every part of an architecture, its numbers beside it as they change.

The editor of a custom accelerator: one of the catalog copied into fields, with what follows from them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter, Request
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import FormData
from starlette.responses import Response

from app.calc.accelerator import Accelerator
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.model.parameters import convention, count_parameters
from app.calc.quantity import GB, MIB, TERA
from app.catalog.catalog import Catalog
from app.features.catalog.layer_diagram import ArchitectureView
from app.features.editors.reading import Read, carried_in, carried_of, read_form, start_from, workbench_items
from app.features.editors.tree import MOST_FIELDS, Tree, change, leaf, nest, settle
from app.features.editors.view import editor_form
from app.features.links.saving import MAX_QUERY
from app.features.services import CatalogDep
from app.features.workbench import form
from app.scenario.parts import MAX_TEXT, Text
from app.scenario.query import BY_NAME, CUSTOM, MAX_CONFIG, query_items
from app.scenario.refusal import ScenarioError, unknown
from app.scenario.resolve import custom_accelerator
from app.scenario.resolve_parts import DEFAULT_NAME
from app.scenario.scenario import DEFAULT_HARDWARE, DEFAULT_MODEL, Scenario
from app.web import urls
from app.web.problem import ProblemError, refusals_of
from app.web.query import items_of, scenario_from
from app.web.templating import TemplatesDep, is_fragment, templates_of

WHOLE_EDITOR = "div#editor"
_NAME = TypeAdapter[str](Text)
pages = APIRouter(include_in_schema=False)


@pages.get("/models/custom")
async def start(request: Request, catalog: CatalogDep) -> Response:
    """The editor, filled in from a model of the catalog or from what an address of the workbench brings."""
    begun = start_from(items_of(request.query_params), catalog)
    texts = {"carried": urls.query_string(begun.carried), "obstacle": begun.obstacle, "began": begun.model_id}
    return _answer(request, begun.tree, texts, status=422 if begun.obstacle else 200)


@pages.post("/models/custom")
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


EDITED = ", edited"
OWN = tuple(name for name, field in BY_NAME.items() if field.path.startswith("hardware.custom."))


@dataclass(frozen=True, slots=True)
class AcceleratorView:
    """What follows from the figures of a card."""

    device: Accelerator

    @property
    def sweep_s(self) -> float:
        """Seconds to read all of its memory once, as marketed: no decode step of a full card is faster."""
        return self.device.memory_marketed_bytes / self.device.bandwidth_bytes_per_s

    @property
    def ridges(self) -> list[tuple[Dtype, float, float]]:
        """Type, rate, and the FLOPs a byte from which on arithmetic is the limit."""
        bandwidth = self.device.bandwidth_bytes_per_s
        return [(dtype, rate, rate / bandwidth) for dtype, rate in self.device.peak_flops_per_s.items()]


@pages.get("/hardware/custom")
async def edit_page(request: Request, catalog: CatalogDep, templates: TemplatesDep) -> Response:
    """The fields of a card of one's own: a copy of `from`, or what the address says, with every figure checked."""
    items = [(name, text) for name, text in items_of(request.query_params) if name in BY_NAME or name == "from"]
    typed = [(name, text) for name, text in items if name in OWN]
    carried = [(name, text) for name, text in items if name not in (*OWN, "from", "hw", "v", "compute")]
    began = dict(items).get("from", DEFAULT_HARDWARE)
    if not typed:
        typed = _copied(began, catalog)
    asked = [("model", DEFAULT_MODEL), ("hw", CUSTOM), *typed]
    lists = request.app.state.form_lists
    context: dict[str, Any] = {"view": None, "twin": None, "carried": carried, "lists": lists, "own": OWN}
    context["began"] = began
    headers: Mapping[str, str] = {}
    try:
        scenario = scenario_from(asked)
    except ScenarioError as error:
        context["form"] = form.refused_form(asked, Scenario.model_validate(_BLANK), error)
    else:
        assert scenario.hardware.custom is not None  # noqa: S101 - hw=custom asks for it
        context["form"] = form.form_of(scenario)
        own = [item for item in query_items(scenario) if item[0] in OWN]
        model = [] if {"model", "config", "arch"} & dict(carried).keys() else [("model", DEFAULT_MODEL)]
        workbench = [("v", "1"), *model, *carried, ("hw", CUSTOM), *own]
        context |= {
            "view": AcceleratorView(custom_accelerator(scenario.hardware.custom)),
            "workbench": urls.workbench(workbench),
            "twin": urls.evaluate_api(workbench),
        }
        headers = {"HX-Replace-Url": urls.accelerator_editor([*carried, *own])}
    status = 200 if context["view"] else 422
    if not is_fragment(request):
        return templates.page("accelerator_editor", context, status)
    return templates.partial("accelerator_update", context, status, headers)


# The defaults of the fields that are not this page's.
_BLANK = {"model": {"id": DEFAULT_MODEL}, "hardware": {"id": DEFAULT_HARDWARE}}


def _copied(id_: str, catalog: Catalog) -> list[tuple[str, str]]:
    """The fields of a card of the catalog; what it does not publish stays empty."""
    device = catalog.devices.get(id_)
    if device is None:
        raise ProblemError(404, unknown("from", "accelerator", id_[:MAX_TEXT], catalog.devices).message)
    reported, link = device.memory_reported_bytes, device.link_bytes_per_s_one_way
    figures = {
        "name": f"{device.name}{EDITED}"[:MAX_TEXT],
        "memory_gb": device.memory_marketed_bytes / GB,
        "memory_reported_mib": None if reported is None else round(reported / MIB),
        "bandwidth_gb_per_s": device.bandwidth_bytes_per_s / GB,
        "dense_tflops": {dtype: rate / TERA for dtype, rate in device.peak_flops_per_s.items()},
        "tdp_w": device.tdp_w,
        "usd_per_hour": device.price_usd_per_hour,
        "link_one_way_gb_per_s": None if link is None else link / GB,
    }
    if not figures["dense_tflops"]:
        # A card without a published rate: the field for it is left to its author.
        figures["dense_tflops"] = {Dtype.BF16: 1.0}
    scenario = Scenario.model_validate({"model": {"id": DEFAULT_MODEL}, "hardware": {"custom": figures}})
    own = [item for item in query_items(scenario) if item[0] in OWN]
    return own if device.peak_flops_per_s else [item for item in own if item[0] != "hw_bf16"]
