"""The catalog: models, accelerators and engines, with their sources."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app.api.problems import NOT_FOUND
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.kv_cache import kv_bytes_per_sequence
from app.calc.parameters import count_parameters, weight_bytes
from app.catalog.accelerators import AcceleratorRecord
from app.catalog.models import ModelRecord
from app.web.json_route import JsonResponse
from app.web.problem import ProblemError
from app.web.services import CatalogDep

router = APIRouter(tags=["catalog"])
KV_CONTEXT = 4_096


@router.get("/models", response_model=dict[str, Any])
async def models(catalog: CatalogDep) -> Response:
    """Every model, in short."""
    rows = [_model_summary(record) for record in catalog.models.values()]
    return JsonResponse({"catalog_version": catalog.version, "models": rows})


@router.get("/models/{model_id}", response_model=dict[str, Any], responses=NOT_FOUND)
async def model(model_id: str, catalog: CatalogDep) -> Response:
    """One model: dimensions, layers, parameters by group, bytes by format, sources and caveats."""
    record = catalog.models.get(model_id)
    if record is None:
        raise ProblemError(404, "There is no such model in the catalog.")
    counts = count_parameters(record.architecture)
    return JsonResponse(
        _facts(record)
        | _model_summary(record)
        | {
            "parameters": _facts(counts) | {"total": counts.total, "text": counts.text},
            "weight_bytes": {fmt.value: weight_bytes(counts, fmt) for fmt in WeightFormat},
            "deviation_from_stated": record.deviation,
        }
    )


@router.get("/hardware", response_model=dict[str, Any])
async def hardware(catalog: CatalogDep) -> Response:
    """Every accelerator, in short. Rates are dense; memory as marketed and as the driver reports it."""
    rows = [_accelerator_summary(record) for record in catalog.accelerators.values()]
    return JsonResponse({"catalog_version": catalog.version, "hardware": rows})


@router.get("/hardware/{hardware_id}", response_model=dict[str, Any], responses=NOT_FOUND)
async def accelerator(hardware_id: str, catalog: CatalogDep) -> Response:
    """One accelerator: every fact with sources, caveats and the disagreements between sources."""
    record = catalog.accelerators.get(hardware_id)
    if record is None:
        raise ProblemError(404, "There is no such accelerator in the catalog.")
    return JsonResponse(_facts(record) | _accelerator_summary(record))


@router.get("/engines", response_model=dict[str, Any])
async def engines(catalog: CatalogDep) -> Response:
    """The engines a scenario can name, and what their memory setting means."""
    return JsonResponse({"engines": [_facts(engine) for engine in catalog.engines.values()]})


def _model_summary(record: ModelRecord) -> dict[str, Any]:
    architecture = record.architecture
    sequence = kv_bytes_per_sequence(architecture, KV_CONTEXT, Dtype.BF16)
    return {
        "id": record.id,
        "name": record.name,
        "family": record.family,
        "hub_id": record.hub_id,
        "params": count_parameters(architecture).total,
        "attention": architecture.attention_kind,
        "layers_count": architecture.n_layers,
        "max_position": architecture.max_position,
        "kv_bytes_per_token_bf16_at_4096": float(sequence) / KV_CONTEXT,
    }


def _accelerator_summary(record: AcceleratorRecord) -> dict[str, Any]:
    device = record.accelerator
    return {
        "id": record.id,
        "name": record.name,
        "vendor": record.vendor,
        "year": record.year,
        "memory_marketed_bytes": device.memory_marketed_bytes,
        "memory_reported_bytes": device.memory_reported_bytes,
        "bandwidth_bytes_per_s": device.bandwidth_bytes_per_s,
        "peak_flops_per_s": {dtype.value: rate for dtype, rate in device.peak_flops_per_s.items()},
        "link_bytes_per_s_one_way": device.link_bytes_per_s_one_way,
        "tdp_w": device.tdp_w,
        "price_usd_per_hour": device.price_usd_per_hour,
        "confidence": record.confidence.value,
    }


def _facts(value: Any) -> Any:
    """A record in plain types; what is unknown is null."""
    if is_dataclass(value):
        return {field.name: _facts(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _facts(item) for key, item in value.items()}
    return [_facts(item) for item in value] if isinstance(value, tuple) else value
