"""What the page of an import shows: the reading, and the ways on from it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from app.calc.dtypes import WeightFormat
from app.catalog.architecture_document import architecture_document
from app.catalog.importing.families import FAMILIES
from app.catalog.importing.keys import FieldReading, Origin
from app.default_scenario import DEFAULT_HARDWARE
from app.model_import import Imported
from app.pages.architecture_view import ArchitectureView
from app.pages.editor_start import fits
from app.pages.saving import MAX_QUERY
from app.scenario_query import MAX_CONFIG
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
        """The model in numbers."""
        reading = self.imported.reading
        return ArchitectureView(self.imported.architecture, reading.plan, self.imported.kv_cache)

    @property
    def family(self) -> str:
        """The family's name."""
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
