"""The rows of the list of accelerators: each figure as it is written, unknown ones and doubtful ones marked."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.calc.notation import significant
from app.catalog.accelerators import AcceleratorRecord, Status
from app.web import listing, urls
from app.web.hardware_columns import KIND_LABELS, RATES, dtype_at_16_bits
from app.web.listing import Column

_UNCERTAIN_BY = {
    "memory": ("memory.marketed_gb",),
    "reported": ("memory.reported_mib",),
    "bandwidth": ("memory.bandwidth_gb_per_s",),
    "link": ("link.one_way_gb_per_s",),
    "power": ("power.tdp_w",),
    "price": ("price.usd_per_hour",),
    **{dtype.value: (f"dense_tflops.{dtype}",) for dtype in RATES},
}
_WRITTEN = {"year": "d", "price": ".2f"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of a row. `text` is None where it is unknown."""

    text: str | None
    numeric: bool
    doubtful: bool


@dataclass(frozen=True, slots=True)
class AcceleratorRow:
    """One row of the list: its name leads to its page, the cells stand under the list's columns."""

    name: str
    href: str
    about: str
    announced: bool
    cells: Sequence[Cell]


def shown(columns: Iterable[Column[AcceleratorRecord]]) -> list[Column[AcceleratorRecord]]:
    """The columns of the table, after the name."""
    return [column for column in columns if column.sortable and column.name != "name"]


def accelerator_rows(
    records: Iterable[AcceleratorRecord], columns: Sequence[Column[AcceleratorRecord]]
) -> list[AcceleratorRow]:
    """The rows of the table, in the order of `records`, with a cell under each of `columns`."""
    return [
        AcceleratorRow(
            name=record.name,
            href=urls.accelerator(record.id),
            about=f"{record.vendor} · {KIND_LABELS[record.kind]} · {record.year}",
            announced=record.status is Status.ANNOUNCED,
            cells=[_cell(record, column) for column in columns],
        )
        for record in records
    ]


def _cell(record: AcceleratorRecord, column: Column[AcceleratorRecord]) -> Cell:
    numeric = column.kind is listing.Kind.NUMBER
    doubtful = bool(set(_behind(record, column.name)) & set(record.uncertain))
    return Cell(_text(record, column), numeric, doubtful)


def _text(record: AcceleratorRecord, column: Column[AcceleratorRecord]) -> str | None:
    value = column.value(record)
    if column.name == "kind":
        return KIND_LABELS[record.kind]
    if column.name == "link" and value is None and record.link.name == "none":
        return "none"  # known to have no link, which is not the same as an unknown one
    if value is None or isinstance(value, str):
        return value
    if column.name in _WRITTEN:
        return format(value, _WRITTEN[column.name])
    return significant(value, 4 if column.name in ("reported", "ridge") else 5)


def _behind(record: AcceleratorRecord, name: str) -> tuple[str, ...]:
    """The facts that a figure comes from."""
    if name == "ridge":
        return (*_UNCERTAIN_BY["bandwidth"], f"dense_tflops.{dtype_at_16_bits(record)}")
    return _UNCERTAIN_BY.get(name, ())
