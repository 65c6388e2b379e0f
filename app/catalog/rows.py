"""TOML rows read into frozen dataclasses. The dataclass is the schema: its annotations are checked, cell by cell.

Where an annotation is a protocol of layer kinds, the cell's `kind` says which of the registered classes it is.
"""

import math
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, fields
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, Protocol, TypeVar, get_args, get_origin

from app.calc.layers.parts import FeedForward, Mixer
from app.calc.layers.registry import FEED_FORWARDS, MIXERS
from app.catalog.errors import CatalogError, Place


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
_Row = TypeVar("_Row", bound=Row)
_Kind = TypeVar("_Kind")


def read_catalog(
    place: Path, key: str, kind: type[_Row], check: Callable[[_Row, Place], None] | None = None
) -> Mapping[str, _Row]:
    """Every row by id, in the order of file names and of rows.

    Args:
        place: a TOML file, or a folder of them.
        key: the name of the rows: a file holds `[[key]]` tables and nothing else.
        kind: the dataclass of a row.
        check: what no cell can tell alone; raises a refusal.

    Raises:
        CatalogError: a row is not to be trusted; names the file, the row and the field.
    """
    catalog: dict[str, _Row] = {}
    for file in sorted(place.glob("*.toml")) if place.is_dir() else [place]:
        for record, where in _read(file, key, kind):
            if not record.sources:
                raise where.inside("sources").refusal("no number without a source")
            if check is not None:
                check(record, where)
            if record.id in catalog:
                raise CatalogError(file, record.id, "id", "an earlier row has this id")
            catalog[record.id] = record
    if not catalog:
        raise CatalogError(place, "-", key, "no rows found")
    return MappingProxyType(catalog)


def _read(file: Path, key: str, kind: type[_Row]) -> Iterator[tuple[_Row, Place]]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:  # not TOML, or not UTF-8
        raise CatalogError(file, "-", "-", str(error)) from error
    rows = document.pop(key, None)
    if document or not isinstance(rows, list):
        raise CatalogError(file, "-", min(document, default=key), f"a file holds [[{key}]] rows only")
    for number, raw in enumerate(rows, start=1):
        named = raw.get("id") if isinstance(raw, dict) else None
        place = Place(file, named if isinstance(named, str) and named else f"#{number}")
        yield build(kind, raw, place), place


def build(kind: type[_Kind], raw: object, place: Place) -> _Kind:
    """An instance of the dataclass from a table that has its fields and no others.

    Raises:
        CatalogError: at the cell that is missing, unknown or wrong.
    """
    known = {f.metadata.get("key", f.name): f for f in fields(kind)}  # type: ignore[arg-type]
    table = _table(raw, known.keys(), place)
    for key, f in known.items():
        if key not in table and f.default is MISSING and f.default_factory is MISSING:
            raise place.inside(key).refusal("missing key")
    return kind(**{f.name: _cell(f.type, table[key], place.inside(key)) for key, f in known.items() if key in table})


def _table(raw: object, known: Collection[str], place: Place) -> dict[str, object]:
    if not isinstance(raw, dict):
        raise place.refusal("must be a table")
    for key in raw:
        if key not in known:
            raise place.inside(key).refusal("unknown key")
    return raw


def _cell(kind: Any, value: object, place: Place) -> Any:
    """The value as the annotation wants it; nothing is converted but the exact int to float."""
    if isinstance(kind, UnionType):  # "X | None" allows leaving the key out; "float | str" goes by the value
        kind = str if isinstance(value, str) and str in get_args(kind) else get_args(kind)[0]
    if kind in KINDS:
        return _of_kind(KINDS[kind], value, place)
    if kind is bool:
        if not isinstance(value, bool):
            raise place.refusal("must be true or false")
        return value
    if kind in (int, float):
        return kind(_number(value, kind, place))
    if get_origin(kind) in (tuple, frozenset):
        if not isinstance(value, list):
            raise place.refusal("must be a list")
        return get_origin(kind)(_cell(get_args(kind)[0], one, place.item(n)) for n, one in enumerate(value, start=1))
    if get_origin(kind) is Mapping:
        names, number = get_args(kind)
        # With plain texts for names any key may stand there; else the members of an enum.
        known = tuple(value) if names is str and isinstance(value, dict) else () if names is str else tuple(names)
        table = _table(value, known, place)
        return MappingProxyType({names(key): _cell(number, one, place.inside(key)) for key, one in table.items()})
    if not issubclass(kind, str):
        return build(kind, value, place)
    if not isinstance(value, str) or not value.strip():
        raise place.refusal("must be a text, and not an empty one")
    if issubclass(kind, StrEnum) and value not in tuple(kind):
        raise place.refusal(f"{value!r} is none of {', '.join(kind)}")
    return kind(value)


def _of_kind(registry: Mapping[str, type], value: object, place: Place) -> Any:
    """An instance of the class that the cell's `kind` names."""
    if not isinstance(value, dict):
        raise place.refusal("must be a table")
    name = value.get("kind")
    if not isinstance(name, str) or name not in registry:
        raise place.inside("kind").refusal(f"{name!r} is none of {', '.join(registry)}")
    return build(registry[name], {key: cell for key, cell in value.items() if key != "kind"}, place)


def _number(value: object, kind: type[int] | type[float], place: Place) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, kind)):  # bool is an int to Python
        raise place.refusal("must be a whole number" if kind is int else "must be a number")
    if value > MOST or not math.isfinite(value) or value <= 0:
        raise place.refusal(f"must be finite and above zero, not {value}; leave out what is unknown")
    return value
