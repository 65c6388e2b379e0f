"""What the list of accelerators can be asked, and the figures of one that the pages and the API both derive.

The rows of the list of accelerators: each figure as it is written, unknown ones and doubtful ones marked.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.calc.accelerator import ridge_flops_per_byte
from app.calc.dtypes import Dtype
from app.calc.quantity import significant
from app.catalog.accelerators import AcceleratorRecord, Kind, Status
from app.web import listing, urls
from app.web.listing import Bound, Column

Accelerators = Sequence[Column[AcceleratorRecord]]
KIND_LABELS: Mapping[Kind, str] = {
    Kind.DATA_CENTER: "data center",
    Kind.WORKSTATION: "workstation",
    Kind.CONSUMER: "consumer",
    Kind.INTEGRATED: "integrated",
    Kind.EDGE: "edge",
}
RATES = (Dtype.FP16, Dtype.BF16, Dtype.FP8, Dtype.INT8, Dtype.FP4)
"""The rates that the list shows; the page of an accelerator has all."""
MIB_PER_GIB = 1024
FIRST_YEAR, LAST_YEAR = 2000, 2100
_TEXT, _NUMBER, _CHOICE = listing.Kind.TEXT, listing.Kind.NUMBER, listing.Kind.CHOICE
_LETTERS = ("A to Z", "Z to A")
_YEARS = ("oldest first", "newest first")


def hardware_columns(records: Collection[AcceleratorRecord] = ()) -> Accelerators:
    """The columns of the list, in the order of its table. The makers to choose from are those of `records`."""
    makers = tuple((vendor, vendor) for vendor in dict.fromkeys(record.vendor for record in records))
    kinds = tuple((kind.value, label) for kind, label in KIND_LABELS.items())
    return (
        Column("id", "Id", _TEXT, lambda r: r.id, searched=True, sortable=False),
        Column("architecture", "Architecture", _TEXT, lambda r: r.architecture, searched=True, sortable=False),
        Column("name", "Name", _TEXT, lambda r: r.name, searched=True, orders=_LETTERS),
        Column("vendor", "Maker", _CHOICE, lambda r: r.vendor, choices=makers, searched=True, orders=_LETTERS),
        Column("kind", "Kind", _CHOICE, lambda r: r.kind.value, choices=kinds, orders=_LETTERS),
        _number("year", "Year", "", lambda r: r.year, orders=_YEARS, ends=(FIRST_YEAR, LAST_YEAR), both=True),
        _number("memory", "Memory", "GB", lambda r: r.memory.marketed_gb, asked=True),
        _number("reported", "Reported", "GiB", reported_gib),
        _number("bandwidth", "Bandwidth", "GB/s", lambda r: r.memory.bandwidth_gb_per_s, asked=True),
        *(_number(dtype.value, dtype.value.upper(), rate_unit(dtype), _rate(dtype)) for dtype in RATES),
        _number("ridge", "Ridge", "FLOP/B", ridge_at_16_bits),
        _number("link", "Link", "GB/s", lambda r: r.link.one_way_gb_per_s),
        _number("power", "Power", "W", lambda r: r.power.tdp_w),
        _number("price", "Rent", "$/h", lambda r: r.price.usd_per_hour if r.price else None),
        Column("confidence", "Confidence", _TEXT, lambda r: r.confidence.value, orders=("best first", "worst first")),
        _has(Dtype.FP8),
        _has(Dtype.FP4),
    )


def reported_gib(record: AcceleratorRecord) -> float | None:
    """Memory in GiB as the driver reports it; None where no log was seen."""
    return None if record.memory.reported_mib is None else record.memory.reported_mib / MIB_PER_GIB


def rate_unit(dtype: Dtype) -> str:
    """TOP/s for integers, which have no floating point."""
    return "TOP/s" if dtype.value.startswith("int") else "TFLOP/s"


def ridges(record: AcceleratorRecord) -> dict[Dtype, float]:
    """Ridge point in FLOP/B of each dense rate that is known, in the order of the formats."""
    device = record.accelerator
    known = [dtype for dtype in Dtype if dtype in device.peak_flops_per_s]
    return {d: float(ridge_flops_per_byte(device.peak(d), device.bandwidth_bytes_per_s)) for d in known}


def dtype_at_16_bits(record: AcceleratorRecord) -> Dtype | None:
    """BF16, else FP16: what serving in 16 bits would compute in; None where the card has no known rate for either."""
    return next((dtype for dtype in (Dtype.BF16, Dtype.FP16) if dtype in record.dense_tflops), None)


def ridge_at_16_bits(record: AcceleratorRecord) -> float | None:
    """Ridge point in FLOP/B of that rate."""
    dtype = dtype_at_16_bits(record)
    return None if dtype is None else ridges(record)[dtype]


def _rate(dtype: Dtype) -> Callable[[AcceleratorRecord], float | None]:
    return lambda record: record.dense_tflops.get(dtype)


def _has(dtype: Dtype) -> Column[AcceleratorRecord]:
    name = dtype.value.upper()
    return Column(
        f"has_{dtype.value}",
        f"{name} arithmetic",
        _CHOICE,
        lambda record: "yes" if dtype in record.dense_tflops else "no",
        choices=(("yes", f"has {name}"), ("no", f"no {name} known")),
        sortable=False,
    )


def _number(
    name: str,
    label: str,
    unit: str,
    value: Callable[[AcceleratorRecord], float | None],
    *,
    orders: tuple[str, str] = ("least first", "most first"),
    ends: tuple[float, float] = (0, 1e9),
    asked: bool = False,
    both: bool = False,
) -> Column[AcceleratorRecord]:
    bounds = (Bound.MIN, Bound.MAX) if both else (Bound.MIN,) if asked else ()
    return Column(name, label, _NUMBER, value, unit, (), bounds, ends[0], ends[1], orders=orders)


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
