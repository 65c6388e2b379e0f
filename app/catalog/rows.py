"""TOML rows validated into frozen dataclasses by pydantic. The dataclass is the schema: its annotations are checked.

Where an annotation is a protocol of layer kinds, the cell's `kind` says which of the registered classes it is.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import orjson
from pydantic import AfterValidator, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from app.calc.model.layers.parts import FeedForward, Mixer
from app.calc.model.layers.registry import FEED_FORWARDS, MIXERS


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one cell: `-` for a row or a key that cannot be named, `#2` for a second row without id."""

    file: Path
    row: str
    key: str
    message: str

    @property
    def text(self) -> str:
        return f"{self.file}, row {self.row}, {self.key}: {self.message}"


class CatalogError(ValueError):
    """Catalog files hold what the loader refuses; each fault is a line with its file, row and dotted key."""

    def __init__(self, *faults: Fault) -> None:
        self.faults = faults
        super().__init__("\n".join(fault.text for fault in faults))


class Row(Protocol):
    """What every catalog has in each row."""

    @property
    def id(self) -> str:
        """Unique within its catalog."""
        ...

    @property
    def sources(self) -> tuple[str, ...]:
        """Where the row's facts come from; at least one."""
        ...


KINDS: Mapping[type, Mapping[str, type]] = MappingProxyType({Mixer: MIXERS, FeedForward: FEED_FORWARDS})
MOST = 1e15
"""Larger numbers are a slip of the hand in any unit that the files use."""
DEEPEST = 32
READ_ONLY = AfterValidator(MappingProxyType)
"""Marks a field of the type Mapping, for which pydantic would make a dict that can be changed."""
_TEXT, _TABLE, _LIST = "must be a text, and not an empty one", "must be a table", "must be a list"
_MESSAGES = {
    "missing": "missing key",
    "unexpected_keyword_argument": "unknown key",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": _TEXT,
    "enum": _TEXT,
    "tuple_type": _LIST,
    "frozen_set_type": _LIST,
    "dataclass_type": _TABLE,
    "dict_type": _TABLE,
    "mapping_type": _TABLE,
}
_KEYS = ("missing", "unexpected_keyword_argument")
_QUOTED = re.compile(r"'([^']*)'")
_UNFIT = {"": None}
"""Stands for a value that no TOML file has, a null or an object: valid for no annotation."""
_Row = TypeVar("_Row", bound=Row)
_Kind = TypeVar("_Kind")


def read_catalog(
    place: Path,
    name: str,
    kind: type[_Row],
    check: Callable[[_Row], Iterable[tuple[str, str]]] = lambda _: (),
) -> Mapping[str, _Row]:
    """Every row by id, in the order of file names and of rows.

    Args:
        place: a TOML file, or a folder of them.
        name: what the rows are called: a file holds `[[name]]` tables and nothing else.
        kind: the dataclass of a row.
        check: what no cell can tell alone, as pairs of key and message.

    Raises:
        CatalogError: rows are not to be trusted; names every fault with the file, the row and the key.
    """
    catalog: dict[str, _Row] = {}
    faults: list[Fault] = []
    for file in sorted(place.glob("*.toml")) if place.is_dir() else [place]:
        try:
            rows = _rows(file, name)
        except CatalogError as error:
            faults += error.faults
            continue
        for number, raw in enumerate(rows, start=1):
            named = raw.get("id") if isinstance(raw, dict) else None
            row = named if isinstance(named, str) and named else f"#{number}"
            record, wrong = validated(kind, raw)
            if record is not None:
                if not record.sources:
                    wrong.append(("sources", "no number without a source"))
                if record.id in catalog:
                    wrong.append(("id", "an earlier row has this id"))
                wrong += check(record)
                catalog.setdefault(record.id, record)
            faults += [Fault(file, row, key, message) for key, message in wrong]
    if not catalog and not faults:
        faults.append(Fault(place, "-", name, "no rows found"))
    if faults:
        raise CatalogError(*faults)
    return MappingProxyType(catalog)


def _rows(file: Path, name: str) -> list[object]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:  # not TOML, or not UTF-8
        raise CatalogError(Fault(file, "-", "-", str(error))) from error
    rows = document.pop(name, None)
    if document or not isinstance(rows, list):
        raise CatalogError(Fault(file, "-", min(document, default=name), f"a file holds [[{name}]] rows only"))
    return rows


def validated(kind: type[_Kind], raw: object) -> tuple[_Kind | None, list[tuple[str, str]]]:
    """An instance of the dataclass from a table that has its fields and no others, or all that is wrong with it.

    The faults are pairs of dotted key and message; items of lists count from 1.
    """
    wrong: dict[str, str] = {}
    fit = _fit(raw, "", wrong, DEEPEST)
    record: _Kind | None = None
    try:
        # As JSON: strict validation of Python's own types would take no list for a tuple and no text for an enum.
        record = _adapter(kind).validate_json(orjson.dumps(fit), strict=True, extra="forbid")  # type: ignore[arg-type]
    except ValidationError as error:
        wrong |= dict(_located(fault, raw) for fault in reversed(error.errors(include_url=False)))
    return (None if wrong else record), [(key or "-", message) for key, message in wrong.items()]


@cache
def _adapter(kind: type[_Kind]) -> TypeAdapter[_Kind]:
    for protocol in KINDS:
        if not hasattr(protocol, "__get_pydantic_core_schema__"):
            # The arithmetic knows nothing of pydantic, so its protocols are taught here.
            protocol.__get_pydantic_core_schema__ = _union_of(protocol)  # type: ignore[attr-defined]
    return TypeAdapter(kind)


def _union_of(protocol: type) -> Callable[[Any, GetCoreSchemaHandler], CoreSchema]:
    """The schema of any registered class, told apart by a key `kind` that the class itself does not have."""

    def schema(_: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        registry, choices = KINDS[protocol], {}
        for name, kind in registry.items():
            own: Any = handler.resolve_ref_schema(handler.generate_schema(kind))
            tag = core_schema.dataclass_field("kind", core_schema.literal_schema([name]), init_only=True)
            arguments = {**own["schema"], "fields": [*own["schema"]["fields"], tag], "collect_init_only": True}
            choices[name] = {key: value for key, value in own.items() if key != "ref"} | {"schema": arguments}
        return core_schema.tagged_union_schema(
            choices,  # type: ignore[arg-type]
            "kind",
            custom_error_type="kind",
            custom_error_message="none of the kinds",
            custom_error_context={"expected": ", ".join(registry)},
        )

    return schema


def _fit(value: object, key: str, wrong: dict[str, str], depth: int) -> object:
    """The value for JSON; what is impossible whatever the annotation is noted, and valid stand-ins take its place."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        if 0 < value <= MOST:
            return value
        wrong[key] = f"must be finite and above zero, not {value}; leave out what is unknown"
        return type(value)(1)
    if isinstance(value, str):
        if not value.strip():
            wrong[key] = _TEXT
        return value
    if isinstance(value, dict | list) and not depth:
        wrong[key] = "is nested too deeply"
        return _UNFIT
    if isinstance(value, list):
        return [_fit(item, f"{key}[{number}]", wrong, depth - 1) for number, item in enumerate(value, start=1)]
    if isinstance(value, dict):
        return {
            name: _fit(item, f"{key}.{name}" if key else str(name), wrong, depth - 1) for name, item in value.items()
        }
    return _UNFIT


def _located(error: ErrorDetails, raw: object) -> tuple[str, str]:
    """The dotted key and our message of an error of pydantic's."""
    kind, key, value = error["type"], "", raw
    for step in error["loc"]:
        if step == "[key]":
            return key, "unknown key"
        if isinstance(value, list):
            key, value = f"{key}[{int(step) + 1}]", value[int(step)]
        elif not isinstance(value, dict):
            if kind in _KEYS:
                return key, _TABLE
            break  # the choice of a union of plain types
        elif step in value or step != value.get("kind"):  # else the choice of a union of layer kinds
            key, value = f"{key}.{step}" if key else str(step), value.get(step)
    if kind == "kind":
        named = value.get("kind") if isinstance(value, dict) else None
        return f"{key}.kind", f"{named!r} is none of {error['ctx']['expected']}"
    if kind == "enum" and isinstance(value, str) and value.strip():
        return key, f"{value!r} is none of {', '.join(re.findall(_QUOTED, error['ctx']['expected']))}"
    return key, _MESSAGES.get(kind, error["msg"])
