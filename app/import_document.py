"""The JSON form of an import: the architecture, its sizes, and where each field came from."""

from typing import Any

from app.calc.architecture import Architecture
from app.calc.layers.registry import kind_of
from app.calc.parameters import count_parameters
from app.catalog.architecture_document import architecture_document
from app.model_import import Imported

CONTEXTS = (1_024, 8_192, 131_072)


def import_document(imported: Imported) -> dict[str, Any]:
    """The JSON form of an import."""
    reading, counts, plan = imported.reading, imported.counts, imported.reading.plan
    architecture = imported.architecture
    return {
        "name": architecture.name,
        "family": reading.family,
        "model_type": reading.model_type,
        "read_as": reading.read_as,
        "source": imported.source,
        "architecture": architecture_document(imported.described),
        "layers": _layers(architecture),
        "parameters": {
            "total": counts.total,
            "text": counts.text,
            "vision": counts.vision,
            "mtp": count_parameters(imported.described).mtp_params,
            "active": {
                "all_weights": counts.active,
                "without_embedding": counts.active_without_embedding,
                "without_embedding_and_head": counts.active_without_embeddings,
            },
        },
        "weights": {
            "label": str(plan.label),
            "bytes": imported.weight_bytes,
            "wide": plan.wide.element.value,
            "groups": [
                {
                    "group": stored.group.value,
                    "params": stored.params,
                    "element": stored.element.value,
                    "bits_per_weight": stored.bits_per_weight,
                    "params_left_wide": stored.wide_params,
                    "bytes": stored.bytes,
                }
                for stored in imported.stored
            ],
        },
        "kv_cache": {
            "element": imported.kv_cache.value,
            "bytes_per_token": {str(tokens): imported.kv_bytes_per_token(tokens) for tokens in CONTEXTS},
        },
        "fields": [
            {"name": f.name, "value": f.value, "origin": f.origin.value, "key": f.key, "note": f.note}
            for f in reading.fields
        ],
        "unread": list(reading.unread),
        "notices": list(reading.notices),
        "scenario_model": imported.model,
    }


def _layers(architecture: Architecture) -> list[dict[str, Any]]:
    """One entry a layer from the input up; like layers together where the order is not known."""
    groups = [
        {"kind": None if group.mixer is None else kind_of(group.mixer), "label": group.label, "group": number}
        for number, group in enumerate(architecture.layers)
    ]
    order = architecture.order or [n for n, group in enumerate(architecture.layers) for _ in range(group.count)]
    return [groups[number] for number in order]
