"""The editor of a custom accelerator: one of the catalog copied into fields, with what follows from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.calc.accelerator import Accelerator
from app.calc.dtypes import Dtype
from app.calc.units import GB, MIB, TERA
from app.catalog.catalog import Catalog
from app.default_scenario import DEFAULT_HARDWARE, DEFAULT_MODEL
from app.pages import form
from app.refusal import ScenarioError, unknown
from app.resolve import custom_accelerator
from app.scenario import Scenario
from app.scenario_parts import MAX_TEXT
from app.scenario_query import BY_NAME, CUSTOM, query_items
from app.web import urls
from app.web.problem import ProblemError
from app.web.query import items_of, scenario_from
from app.web.services import CatalogDep
from app.web.templating import TemplatesDep, is_fragment

EDITED = ", edited"
OWN = tuple(name for name, field in BY_NAME.items() if field.path.startswith("hardware.custom."))
router = APIRouter(include_in_schema=False)


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


@router.get("/hardware/custom")
async def edit(request: Request, catalog: CatalogDep, templates: TemplatesDep) -> Response:
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
