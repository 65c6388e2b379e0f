"""The models: a list that the address narrows and orders, and a page for each.

A catalog record as JSON has it.

One model as JSON: the catalog's row, and what its page works out of it.

The models of the catalog: the list that a query narrows and orders, and each with all that is worked out of it.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.calc.broadcast import scalar
from app.calc.dtypes import Dtype
from app.calc.memory.cache import kv_bytes_per_sequence
from app.catalog.architecture_document import architecture_document
from app.catalog.facts import (
    CONTEXT_TOKENS,
    KV_CACHE,
    MEMORY_UTILIZATION,
    CacheAt,
    ModelFacts,
    ModelShelf,
    ShippedFiles,
)
from app.features.catalog.model_rows import kind, model_columns, model_rows, released, shipped_format, shown
from app.features.catalog.model_view import model_view
from app.features.services import ShelfDep
from app.web import urls
from app.web.listing import listed
from app.web.listing_query import list_parameters, read_listing
from app.web.openapi import NOT_FOUND, PROBLEMS
from app.web.problem import JsonResponse, ProblemError, invalid, near_ids
from app.web.query import items_of
from app.web.templating import TemplatesDep

pages = APIRouter(include_in_schema=False)


@pages.get("/models")
async def models_page(request: Request, shelf: ShelfDep) -> Response:
    """The models that the query asks for; every one where it asks for nothing."""
    known = shelf.facts.values()
    listing = read_listing(items_of(request.query_params), model_columns(known))
    columns = shown(listing.columns)
    context: dict[str, Any] = {
        "form": listing,
        "columns": columns,
        "rows": model_rows([] if listing.refusals else listing.of(known), columns),
        "total": len(known),
        "address": urls.models,
        "twin": None if listing.refusals else urls.models_api(listing.items),
    }
    return listed(request, listing, urls.models, ("models", "model_update"), context)


@pages.get("/models/{model_id}")
async def model_page(model_id: str, shelf: ShelfDep, templates: TemplatesDep) -> Response:
    """Everything the catalog knows of one model; for an id that is not there, what may have been meant."""
    facts = shelf.facts.get(model_id)
    if facts is None:
        near = near_ids(model_id, {id_: known.record.name for id_, known in shelf.facts.items()})
        return templates.page("no_model", {"near": [shelf.facts[id_].record for id_ in near]}, 404)
    return templates.page("model", {"view": model_view(facts, shelf), "twin": urls.model_api(model_id)})


def plain_facts(value: Any) -> Any:
    """A record in plain types; what is unknown is null."""
    if is_dataclass(value):
        return {field.name: plain_facts(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_facts(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(plain_facts(item) for item in value)  # a set has no order of its own, and an answer must not vary
    return [plain_facts(item) for item in value] if isinstance(value, tuple) else value


KV_CONTEXT = 4_096


def model_summary(facts: ModelFacts) -> dict[str, Any]:
    """A row of the list."""
    record, architecture, counts = facts.record, facts.architecture, facts.counts
    at_4096 = scalar(kv_bytes_per_sequence(architecture, KV_CONTEXT, Dtype.BF16))
    return {
        "id": record.id,
        "name": record.name,
        "family": record.family,
        "hub_id": record.hub_id,
        "kind": kind(facts),
        "released_on": released(facts),
        "params": counts.total,
        "active_params": counts.active,
        "attention": architecture.attention_kind,
        "attention_class": facts.kind.value,
        "layers_count": architecture.n_layers,
        "max_position": architecture.max_position,
        "kv_bytes_per_token_bf16_at_4096": at_4096 / KV_CONTEXT,
        "kv_bytes_per_token_bf16_at_8192": facts.usual_cache.bytes_per_token,
        "shipped_format": shipped_format(facts),
        "shipped_bytes": facts.shipped.loaded_bytes,
    }


def model_document(facts: ModelFacts, shelf: ModelShelf) -> dict[str, Any]:
    """The whole of it."""
    record, counts = facts.record, facts.counts
    # A mapping by an enum, and counts that are zero, would read as gaps: sums are written beside the parts.
    groups = {group.value: plain_facts(count) | {"total": count.total} for group, count in counts.groups.items()}
    row: dict[str, Any] = plain_facts(record)
    return (
        row
        | model_summary(facts)
        | {
            "architecture": architecture_document(facts.architecture),
            "order": list(facts.architecture.order) or None,
            "parameters": plain_facts(counts) | {"groups": groups, "total": counts.total, "text": counts.text},
            "active": {
                "all_weights": counts.active,
                "without_input_embedding": counts.active_without_embedding,
                "without_embedding_and_head": counts.active_without_embeddings,
                "read_per_token": counts.read_per_token,
                "stated": record.stated.active_params,
                "stated_convention": record.stated.active_convention,
            },
            "weight_bytes": {fmt.value: size for fmt, size in facts.weight_bytes.items()},
            "recounted_params": record.stated_parts,
            "deviation_from_stated": record.deviation,
            "checkpoints": [_files(files) for files in facts.files],
            "mtp_params": facts.mtp_params,
            "kv": [_cache(at) for at in facts.cache_at],
            "state_bytes": facts.cache_shape.state_bytes,
            "derived": [other.id for other in shelf.derived_from(record.id)],
            "held_by": _held_by(facts, shelf),
        }
    )


def _files(files: ShippedFiles) -> dict[str, Any]:
    row: dict[str, Any] = plain_facts(files.checkpoint)
    return row | {
        "loaded_bytes": files.loaded_bytes,
        "mtp_bytes": files.mtp_bytes,
        "duplicate_bytes": files.duplicate_bytes,
        "computed_bytes": files.computed_bytes,
        "difference_bytes": files.difference_bytes,
    }


def _cache(at: CacheAt) -> dict[str, Any]:
    row: dict[str, Any] = plain_facts(at)
    return row | {"bytes_per_token": at.bytes_per_token}


def _held_by(facts: ModelFacts, shelf: ModelShelf) -> dict[str, Any]:
    """The fewest cards of each accelerator that hold it in each format, and for how many users; null where none do."""
    return {
        "memory_utilization": MEMORY_UTILIZATION,
        "kv_cache": KV_CACHE.value,
        "context_tokens": min(CONTEXT_TOKENS, facts.loads[0].tokens),
        "weights": [
            {
                "format": load.weights,
                "weight_bytes": load.weight_bytes,
                "per_gpu": [
                    {"gpus": share.gpus, "weight_bytes": share.weight_bytes, "sequence_bytes": share.sequence_bytes}
                    for share in load.shares
                ],
                "accelerators": {
                    id_: plain_facts(load.fewest(device)) for id_, device in shelf.catalog.devices.items()
                },
            }
            for load in facts.loads
        ],
    }


api = APIRouter(tags=["catalog"])
_DOCUMENTED = list_parameters(model_columns(), "name, family, id, repository or a release of the same shape")


@api.get("/models", response_model=dict[str, Any], responses={422: PROBLEMS[422]}, openapi_extra=_DOCUMENTED)
async def models(request: Request, shelf: ShelfDep) -> Response:
    """Every model, in short, or those a query asks for, by the names of the page's address.

    Parameters are counted from the dimensions; what is unknown is null.
    """
    known = shelf.facts.values()
    listing = read_listing(items_of(request.query_params), model_columns(known))
    if listing.refusals:
        raise invalid(listing.refusals)
    rows = [model_summary(facts) for facts in listing.of(known)]
    return JsonResponse({"catalog_version": shelf.catalog.version, "total": len(known), "models": rows})


@api.get("/models/{model_id}", response_model=dict[str, Any], responses=NOT_FOUND)
async def model(model_id: str, shelf: ShelfDep) -> Response:
    """One model: its row, layers in their order, parameters by group and by every convention, cache, bytes, files."""
    facts = shelf.facts.get(model_id)
    if facts is None:
        near = near_ids(model_id, {id_: known.record.name for id_, known in shelf.facts.items()})
        hint = f" Near it: {', '.join(near)}." if near else ""
        raise ProblemError(404, f"There is no such model in the catalog.{hint}")
    return JsonResponse(model_document(facts, shelf))
