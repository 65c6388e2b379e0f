"""One model as JSON: the catalog's row, and what its page works out of it."""

from typing import Any

from app.api.facts import facts as plain
from app.calc.broadcast import scalar
from app.calc.dtypes import Dtype
from app.calc.kv_cache import kv_bytes_per_sequence
from app.catalog.architecture_document import architecture_document
from app.holding import CONTEXT_TOKENS, KV_CACHE, MEMORY_UTILIZATION
from app.model_facts import CacheAt, ModelFacts, ModelShelf, ShippedFiles
from app.web.model_columns import kind, released, shipped_format

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
    groups = {group.value: plain(count) | {"total": count.total} for group, count in counts.groups.items()}
    row: dict[str, Any] = plain(record)
    return (
        row
        | model_summary(facts)
        | {
            "architecture": architecture_document(facts.architecture),
            "order": list(facts.architecture.order) or None,
            "parameters": plain(counts) | {"groups": groups, "total": counts.total, "text": counts.text},
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
    row: dict[str, Any] = plain(files.checkpoint)
    return row | {
        "loaded_bytes": files.loaded_bytes,
        "mtp_bytes": files.mtp_bytes,
        "duplicate_bytes": files.duplicate_bytes,
        "computed_bytes": files.computed_bytes,
        "difference_bytes": files.difference_bytes,
    }


def _cache(at: CacheAt) -> dict[str, Any]:
    row: dict[str, Any] = plain(at)
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
                "accelerators": {id_: plain(load.fewest(device)) for id_, device in shelf.catalog.devices.items()},
            }
            for load in facts.loads
        ],
    }
