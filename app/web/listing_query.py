"""The query of a list, read against its columns: never an exception, and everything wrong told at its name.

Query parameters in OpenAPI: those of a scenario as its fields declare them, those of a list out of its columns.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from app.calc.quantity import significant
from app.scenario.query import FIELDS, MAX_CONFIG, SIZE_PATTERN, QueryField
from app.scenario.query import Kind as InputKind
from app.scenario.refusal import Refusal
from app.web.listing import PAGE, SEARCH, SORT, Bound, Column, Kind, Listing, Row, asked_by, query_names

MOST_CHARACTERS = 100
_PAGE = re.compile(r"[1-9][0-9]{0,5}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})([eE][+-]?[0-9]{1,3})?")


def read_listing(
    items: Iterable[tuple[str, str]], columns: Sequence[Column[Row]], rows_a_page: int | None = None
) -> Listing[Row]:
    """What the query `items` ask of a list of `columns`. With refusals it asks nothing, and keeps what was typed.

    A list that is told by pages of `rows_a_page` may be asked for one of them.
    """
    paged = () if rows_a_page is None else (PAGE,)
    names, typed, refusals = (*query_names(columns), *paged), dict[str, str](), list[Refusal]()
    repeated = set[str]()
    for name, text in items:
        if name not in names:
            if all(refusal.path != name[:60] for refusal in refusals):
                refusals.append(Refusal(name[:60], "There is no such query parameter."))
        elif name in typed:
            repeated.add(name)
        else:
            typed[name] = text
    refusals += [Refusal(name, "Given more than once; one value is read.") for name in names if name in repeated]

    reader = _Reader(typed, repeated, refusals)
    search = reader.search()
    tests = [test for column in columns for test in reader.tests(column)]
    sorted_by, descending = reader.order(columns)
    page = reader.page()
    kept = MappingProxyType({name: reader.spelled.get(name, text) for name, text in typed.items()})
    if refusals:
        return Listing(tuple(columns), MappingProxyType(typed), tuple(refusals), (), ())
    return Listing(tuple(columns), kept, (), search, tuple(tests), sorted_by, descending, page, rows_a_page)


class _Reader:
    """Reads the texts of one query, and notes what is wrong with them."""

    def __init__(self, typed: Mapping[str, str], skipped: set[str], refusals: list[Refusal]) -> None:
        self._texts = {name: text.strip() for name, text in typed.items() if name not in skipped}
        self._refusals = refusals
        self.spelled: dict[str, str] = dict(self._texts)

    def search(self) -> tuple[re.Pattern[str], ...]:
        text = self._texts.get(SEARCH, "")
        if len(text) > MOST_CHARACTERS:
            self._refuse(SEARCH, f"At most {MOST_CHARACTERS} characters.")
            return ()
        return tuple(_beginning(word) for word in text.casefold().split())

    def tests(self, column: Column[Row]) -> Iterator[Callable[[Row], bool]]:
        limits: dict[Bound, float] = {}
        for name, bound in asked_by(column):
            text = self._texts.get(name, "")
            if not text:
                continue
            if bound is None:
                choice = self._choice(name, text, column.choices)
                if column.kind is Kind.VIEW:
                    if choice == column.choices[0][0]:  # what is shown anyway is not written out
                        self.spelled[name] = ""
                elif choice is not None:
                    yield _is(column, choice)
            elif (limit := self._limit(name, text, column)) is not None:
                limits[bound] = limit
                yield _within(column, bound, limit)
        if limits.get(Bound.MIN, -math.inf) > limits.get(Bound.MAX, math.inf):
            self._refuse(f"max_{column.name}", "Less than the least that is asked for: nothing could be both.")

    def order(self, columns: Sequence[Column[Row]]) -> tuple[Column[Row] | None, bool]:
        text = self._texts.get(SORT, "")
        if not text:
            return None, False
        for column in columns:
            if column.sortable and column.name == text.removeprefix("-"):
                return column, text.startswith("-")
        known = ", ".join(column.name for column in columns if column.sortable)
        self._refuse(SORT, f"Must be one of {known}; with a minus before it for the largest first.")
        return None, False

    def page(self) -> int:
        text = self._texts.get(PAGE, "")
        if not text:
            return 1
        if not _PAGE.fullmatch(text):
            self._refuse(PAGE, "Must be a whole number from 1 to 999,999.")
            return 1
        return int(text)

    def _choice(self, name: str, text: str, choices: Iterable[tuple[str, str]]) -> str | None:
        known = {value.casefold(): value for value, _ in choices}
        found = known.get(text.casefold())
        if found is None:
            self._refuse(name, f"Must be one of {', '.join(known.values())}.")
        else:
            self.spelled[name] = found
        return found

    def _limit(self, name: str, text: str, column: Column[Row]) -> float | None:
        if not _NUMBER.fullmatch(text):
            self._refuse(name, "Must be a number, and a finite one.")
            return None
        value = float(text)
        if not column.least <= value <= column.most:
            low, high = (significant(end, 12) if end >= 1e4 else f"{end:g}" for end in (column.least, column.most))
            self._refuse(name, f"Must be from {low} to {high}{' ' if column.unit else ''}{column.unit}.")
            return None
        return value

    def _refuse(self, name: str, message: str) -> None:
        self._refusals.append(Refusal(name, message))


def _beginning(word: str) -> re.Pattern[str]:
    """Where a word of a text begins with `word`; digits may begin inside one, so that 300x finds MI300X."""
    before = r"(?<![0-9])" if word[0].isdecimal() else r"(?<![^\W_])"
    return re.compile(before + re.escape(word))


def _is(column: Column[Row], choice: str) -> Callable[[Row], bool]:
    return lambda row: column.value(row) == choice


def _within(column: Column[Row], bound: Bound, limit: float) -> Callable[[Row], bool]:
    def test(row: Row) -> bool:
        value = column.value(row)
        if value is None or isinstance(value, str):
            return False
        return value >= limit if bound is Bound.MIN else value <= limit

    return test


_ENDS = {None: "Only this", Bound.MIN: "Least", Bound.MAX: "Most"}


def scenario_parameters() -> list[dict[str, Any]]:
    """Every name that a scenario has in a query. An empty value stands for null or the default, hence it is allowed."""
    return [
        {
            "name": field.name,
            "in": "query",
            "required": field.name in ("model", "hw"),
            "description": _description(field),
            "schema": _schema(field),
        }
        | ({} if field.name in ("model", "hw") else {"allowEmptyValue": True})
        for field in FIELDS
    ]


def _description(field: QueryField) -> str:
    title = ", ".join(part for part in (field.label, field.unit) if part)
    empty = f" Empty: {field.ui.empty}." if field.ui.empty else ""
    return f"{title}. {field.description}{empty} Scenario field `{field.path}`."


def _schema(field: QueryField) -> dict[str, Any]:
    """What the text of the query may be: a size may have its unit, a document is JSON in a text."""
    if field.kind is InputKind.JSON:
        return {"type": "string", "contentMediaType": "application/json", "maxLength": MAX_CONFIG}
    if field.kind is InputKind.BYTES:
        text = {"type": "string", "pattern": SIZE_PATTERN, "examples": ["46.8 GiB", "500 MB"]}
        return {"anyOf": [dict(field.schema), text]}
    return dict(field.schema)


def list_parameters(columns: Sequence[Column[Any]], searched: str, rows_a_page: int | None = None) -> dict[str, Any]:
    """Additions to an operation in OpenAPI; `searched` are the facts in which words are looked for."""
    sortable = [column.name for column in columns if column.sortable]
    said: dict[str, tuple[str, dict[str, Any]]] = {
        SEARCH: (f"Words that {searched} must all hold.", {"type": "string", "maxLength": MOST_CHARACTERS}),
        SORT: (
            "Name of a column, with a minus before it for the largest first; what is unknown comes last.",
            {"type": "string", "enum": [*sortable, *(f"-{name}" for name in sortable)]},
        ),
    }
    for column in columns:
        for name, bound in asked_by(column):
            if bound is not None:
                schema: dict[str, Any] = {"type": "number", "minimum": column.least, "maximum": column.most}
            else:
                schema = {"type": "string", "enum": [value for value, _ in column.choices if value]}
            unit = f", {column.unit}" if column.unit else ""
            text = f"{_ENDS[bound]} {_in_a_sentence(column.label)}{unit}."
            if column.kind is Kind.VIEW:
                text = f"{column.label}; the first where it is left out."
            said[name] = (text, schema)
    if rows_a_page is not None:
        text = f"Which {rows_a_page} rows, from page 1 on; beyond the last page there are none."
        said[PAGE] = (text, {"type": "integer", "minimum": 1, "maximum": 999_999, "default": 1})
    return {
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": False,
                "allowEmptyValue": True,
                "description": text,
                "schema": schema,
            }
            for name, (text, schema) in said.items()
        ]
    }


def _in_a_sentence(label: str) -> str:
    """The label with a small first letter, unless it starts with an acronym (FP8)."""
    return label if label[:2].isupper() else label[:1].lower() + label[1:]
