"""What the page of an import shows: the reading, and the ways on from it.

The JSON form of an import: the architecture, its sizes, and where each field came from.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from app.calc.dtypes import WeightFormat
from app.calc.model.architecture import Architecture
from app.calc.model.layers.registry import kind_of
from app.calc.model.parameters import count_parameters
from app.catalog.architecture_document import architecture_document
from app.checkpoint.families import FAMILIES
from app.checkpoint.keys import FieldReading, Origin
from app.features.catalog.layer_diagram import ArchitectureView
from app.features.editors.reading import fits
from app.features.importing.read import Imported
from app.features.links.saving import MAX_QUERY
from app.scenario.query import MAX_CONFIG
from app.scenario.scenario import DEFAULT_HARDWARE
from app.web import urls

MOST_LINK = 8_000
"""Characters of an address: what browsers, proxies and chats all carry."""
ORIGINS: Mapping[Origin, str] = {
    Origin.ASSUMED: "assumed",
    Origin.READ: "the file",
    Origin.DERIVED: "derived",
    Origin.DEFAULT: "the class’s default",
}


class Way(Enum):
    """How the workbench gets the model: by a link with all keys, with those that were read, with the architecture
    that was read, or as a saved link."""

    WHOLE = "whole"
    READ_KEYS = "read_keys"
    DESCRIBED = "described"
    SAVED = "saved"
    NONE = "none"


@dataclass(frozen=True)
class ImportView:
    """One import."""

    imported: Imported

    @cached_property
    def numbers(self) -> ArchitectureView:
        reading = self.imported.reading
        return ArchitectureView(self.imported.architecture, reading.plan, self.imported.kv_cache)

    @property
    def family(self) -> str:
        return FAMILIES[self.imported.reading.family].title

    @property
    def fields(self) -> list[FieldReading]:
        """Every field, assumed ones first."""
        return sorted(self.imported.reading.fields, key=lambda f: f.origin is not Origin.ASSUMED)

    @property
    def assumed(self) -> int:
        """How many fields nothing in the file gives."""
        return sum(f.origin is Origin.ASSUMED for f in self.imported.reading.fields)

    def origin(self, field: FieldReading) -> str:
        """Where a field came from, in words."""
        return ORIGINS[field.origin]

    @property
    def mtp_params(self) -> int:
        """Parameters of the multi-token-prediction layers that could be loaded too."""
        return ArchitectureView(self.imported.described, self.imported.reading.plan).counts.mtp_params

    @cached_property
    def onward(self) -> tuple[Way, list[tuple[str, str]]]:
        """The way to the workbench, and its items."""
        whole, smallest = self.imported.model, self.imported.smallest_model
        for way, items, most in (
            (Way.WHOLE, [*_items(whole), *self._cache], MOST_LINK),
            (Way.READ_KEYS, [*_items(smallest), *self._cache], MOST_LINK),
            (Way.DESCRIBED, self._described, MOST_LINK),
            (Way.SAVED, [*_items(smallest), *self._cache], MAX_QUERY),
        ):
            if items and all(len(text) <= MAX_CONFIG for _, text in items) and len(urls.query_string(items)) <= most:
                return way, items
        return Way.NONE, []

    @property
    def workbench(self) -> str:
        """The link to the workbench."""
        return urls.workbench(self.onward[1])

    @property
    def query(self) -> str:
        """The same as a query, to be saved."""
        return urls.query_string(self.onward[1])

    @property
    def _cache(self) -> list[tuple[str, str]]:
        """The type of cache that the files ask for, where they do."""
        asked = self.imported.reading.kv_cache
        return [] if asked is None else [("kv", asked.value)]

    @property
    def _architecture(self) -> list[tuple[str, str]]:
        label = self.imported.reading.plan.label
        return [
            ("model", "custom"),
            ("model_name", self.imported.architecture.name),
            ("arch", _compact(architecture_document(self.imported.described))),
            *([("w", str(label))] if label in tuple(WeightFormat) else []),
            *self._cache,
        ]

    @property
    def _described(self) -> list[tuple[str, str]]:
        """The items that bring the architecture in place of the file; none where its mix of formats would be lost."""
        items = self._architecture
        return [("v", "1"), *items, ("hw", DEFAULT_HARDWARE)] if "w" in dict(items) else []

    @property
    def editor(self) -> str | None:
        """The link to the editor, filled in; None where the model is too large for a link, or for the form."""
        link = urls.model_editor(self._architecture)
        return link if len(link) <= MAX_CONFIG and fits(self.imported.described) else None


def _items(model: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        ("v", "1"),
        ("model", "custom"),
        ("model_name", model["name"]),
        ("config", _compact(model["config"])),
        *([("quant", _compact(model["quantization"]))] if "quantization" in model else []),
        *([("read_as", model["read_as"])] if "read_as" in model else []),
        ("hw", DEFAULT_HARDWARE),
    ]


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


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
