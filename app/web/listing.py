"""A list that is filtered and sorted: its columns, and what a query asks of it, for a page and its JSON twin alike.

What a list can be asked follows from its columns. Each word of `q` must begin a word of a searched column; a choice is
asked by its name, a number by `min_…` and `max_…` where the column has such bounds; `sort` takes the name of a sortable
column, with a minus for the largest first. A view is a choice that changes how the rows are shown, not which. A long
list is told page by page. `app.web.listing_query` reads a query by these rules.

The answer to a list that the address narrows and orders: a page, or the parts of it that a change replaces.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from re import Pattern
from typing import Any, Generic, TypeVar

from fastapi import Request
from starlette.responses import Response

from app.scenario.refusal import Refusal
from app.web.templating import is_fragment, templates_of

SEARCH, SORT, PAGE = "q", "sort", "page"
Row = TypeVar("Row")
Value = str | float | None
Items = Sequence[tuple[str, str]]


class Kind(Enum):
    """How a column is asked and ordered."""

    TEXT = "text"
    NUMBER = "number"
    CHOICE = "choice"
    VIEW = "view"


class Bound(Enum):
    """Which end of a number a query may set."""

    MIN = "min"
    MAX = "max"


_ENDS = {Bound.MIN: "least", Bound.MAX: "most"}


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """One fact of each row. `value` gives None where it is unknown: no bound is then met, and it sorts last.

    Attributes:
        name: its name in a query.
        unit: of the numbers in a query and in the table.
        choices: value and label of each choice; the first of a view is what is shown unless another is asked for.
        least, most: between them lies what a bound may be.
        orders: the two orders in words, ascending first.
    """

    name: str
    label: str
    kind: Kind
    value: Callable[[Row], Value]
    unit: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    bounds: tuple[Bound, ...] = ()
    least: float = 0
    most: float = 1e9
    searched: bool = False
    sortable: bool = True
    orders: tuple[str, str] = ("least first", "most first")

    @property
    def starts_descending(self) -> bool:
        """True where the first order that a reader wants is the largest first."""
        return self.kind is Kind.NUMBER


@dataclass(frozen=True, slots=True)
class Listing(Generic[Row]):
    """What a query asks of a list. With refusals it asks nothing: they are shown, and what was typed beside them."""

    columns: tuple[Column[Row], ...]
    typed: Mapping[str, str]
    refusals: tuple[Refusal, ...]
    words: tuple[Pattern[str], ...]
    tests: tuple[Callable[[Row], bool], ...]
    sorted_by: Column[Row] | None = None
    descending: bool = False
    page: int = 1
    rows_a_page: int | None = None

    def of(self, rows: Iterable[Row]) -> list[Row]:
        """The rows that are asked for, in the order that is asked for; ties stay as they come, unknowns are last."""
        found = [row for row in rows if self._has_words(row) and all(test(row) for test in self.tests)]
        if self.sorted_by is None:
            return found
        known = [(value, row) for row in found if (value := _sortable(self.sorted_by.value(row))) is not None]
        known.sort(key=lambda pair: pair[0], reverse=self.descending)
        return [row for _, row in known] + [row for row in found if self.sorted_by.value(row) is None]

    def _has_words(self, row: Row) -> bool:
        if not self.words:
            return True
        text = " ".join(str(column.value(row) or "") for column in self.columns if column.searched).casefold()
        return all(word.search(text) for word in self.words)

    def on_page(self, found: Sequence[Row]) -> Sequence[Row]:
        """Those of the rows that stand on the page that is asked for; none beyond the last page."""
        if self.rows_a_page is None:
            return found
        return found[(self.page - 1) * self.rows_a_page : self.page * self.rows_a_page]

    def pages(self, found: Sequence[Row]) -> int:
        """How many pages the rows take, at least one."""
        return 1 if self.rows_a_page is None else max(1, -(-len(found) // self.rows_a_page))

    @property
    def items(self) -> Items:
        """The query that asks the same, in one spelling: nothing empty, the order of `names`, the page last."""
        return self.items_on(self.page)

    def items_on(self, page: int) -> Items:
        """The same query on another page."""
        asked = [(name, self.typed[name]) for name in self.names if self.typed.get(name)]
        return [*asked, (PAGE, str(page))] if page > 1 else asked

    def items_with(self, name: str, value: str) -> Items:
        """The same query with one value set, from its first page."""
        asked = {**dict(self.items_on(1)), name: value}
        return [(name, asked[name]) for name in self.names if asked.get(name)]

    def items_sorted(self, column: Column[Row]) -> Items:
        """The same query with the rows in the order of `column`; asked again, the other way round."""
        descending = not self.descending if column is self.sorted_by else column.starts_descending
        order = f"-{column.name}" if descending else column.name
        return self.items_with(SORT, order)

    @property
    def filters(self) -> Items:
        """What narrows the list: the query without its order and its views."""
        views = {column.name for column in self.columns if column.kind is Kind.VIEW}
        return [item for item in self.items_on(1) if item[0] != SORT and item[0] not in views]

    def view(self, name: str) -> str:
        """What a view shows: what is asked for, else its first choice."""
        return self.value(name) or self.column(name).choices[0][0]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name of a query that has a field; the page is asked for by links."""
        return query_names(self.columns)

    def column(self, name: str) -> Column[Row]:
        """The column of a name. Raises StopIteration: no column has it, a slip in a template."""
        return next(column for column in self.columns if column.name == name)

    def label(self, name: str) -> str:
        """What a field is called, for who does not see it: the column, and the end of it that is set."""
        for column in self.columns:
            for asked, bound in asked_by(column):
                if asked == name:
                    return column.label if bound is None else f"{column.label}, {_ENDS[bound]}"
        return {SEARCH: "Search", SORT: "Order"}[name]

    def value(self, name: str) -> str:
        """What stands in a field."""
        return self.typed.get(name, "")

    def error(self, name: str) -> str:
        """What is wrong with it; empty when nothing is."""
        return " ".join(refusal.message for refusal in self.refusals if refusal.path == name)

    @property
    def general(self) -> tuple[str, ...]:
        """What is wrong and belongs to no field."""
        others = [refusal for refusal in self.refusals if refusal.path not in self.names]
        return tuple(f"{one.path}: {one.message}" if one.path else one.message for one in others)

    def holds(self, names: Iterable[str]) -> bool:
        """True when any of the fields is filled or wrong, so that what folds them away must stand open."""
        return any(self.value(name) or self.error(name) for name in names)

    @property
    def orders(self) -> list[tuple[str, str]]:
        """Every order in words, by its value in a query."""
        return [
            (f"{sign}{column.name}", f"{column.label}, {words}")
            for column in self.columns
            if column.sortable
            for sign, words in _in_reading_order(column)
        ]


def query_names(columns: Iterable[Column[Row]]) -> tuple[str, ...]:
    """Every name that a query over `columns` may use: the search first, the order last."""
    return (SEARCH, *(name for column in columns for name, _ in asked_by(column)), SORT)


def asked_by(column: Column[Row]) -> list[tuple[str, Bound | None]]:
    """The names by which a query asks about `column`, each with the end of a number that it sets."""
    if column.kind is Kind.NUMBER:
        return [(f"{bound.value}_{column.name}", bound) for bound in column.bounds]
    return [(column.name, None)] if column.kind in (Kind.CHOICE, Kind.VIEW) else []


def _in_reading_order(column: Column[Row]) -> list[tuple[str, str]]:
    pair = [("", column.orders[0]), ("-", column.orders[1])]
    return pair[::-1] if column.starts_descending else pair


def _sortable(value: Value) -> tuple[float, str] | None:
    """Numbers as numbers and texts without regard to case; one column holds one of the two."""
    if value is None:
        return None
    return (0.0, value.casefold()) if isinstance(value, str) else (float(value), "")


Address = Callable[..., str]


def listed(
    request: Request, listing: Listing[Any], address: Address, page: tuple[str, str], context: dict[str, Any]
) -> Response:
    """The list as a page, or as a fragment that takes the address bar along; 422 where the query is refused.

    Args:
        request: which of the two is asked for.
        listing: the query as it was read.
        address: makes the address of a list from query items.
        page: the page's template, and that of the fragment.
        context: what both show.
    """
    templates = templates_of(request)
    status = 422 if listing.refusals else 200
    if not is_fragment(request):
        return templates.page(page[0], context, status)
    if listing.refusals:
        return templates.partial("list_refusal", context, status)
    # The form already shows the order that it asked for; a heading of the table cannot set it but so.
    context["orders_oob"] = not request.headers.get("hx-source", "").startswith("form")
    here = address(listing.items)
    headers = {} if request.headers.get("hx-current-url", "").endswith(here) else {"HX-Push-Url": here}
    return templates.partial(page[1], context, status, headers)
