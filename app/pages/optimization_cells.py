"""Figures and variants of an optimization in words: values with their units, and how both sides stand to each other."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.calc.notation import quantity, significant
from app.calc.optimize.optimization import Better, Figure, Variants
from app.pages.compare_cells import change_words

DIGITS = 3
ALIKE = 5e-4
"""Two numbers that differ by less are called the same."""
_WRITTEN_OUT = frozenset({"B", "s", "FLOP", "B/s", "FLOP/s", "W", "$"})
"""Units that stand in each cell, since they take prefixes; all others stand in the heading."""
_WHOLE = frozenset({"", "tokens", "sequences"})


@dataclass(frozen=True, slots=True)
class FigureRow:
    """One figure: both sides, the change with its sign, and whether it is better."""

    label: str
    level: str
    before: str
    after: str
    change: str
    verdict: str


@dataclass(frozen=True, slots=True)
class VariantRow:
    """One variant in words."""

    label: str
    cells: Sequence[str]
    is_here: bool
    note: str


@dataclass(frozen=True, slots=True)
class VariantTable:
    """The variants of an optimization; a heading holds the unit where the cells do not."""

    columns: Sequence[str]
    rows: Sequence[VariantRow]
    has_notes: bool


def figure_row(figure: Figure, *, binary: bool) -> FigureRow:
    """One figure in words."""
    return FigureRow(
        figure.of.label,
        figure.level.value,
        written(figure.before, figure.of.unit, binary=binary),
        written(figure.after, figure.of.unit, binary=binary),
        change(figure, binary=binary),
        verdict(figure),
    )


def written(value: float | None, unit: str, *, binary: bool) -> str:
    """A value with its unit; a dash where there is none."""
    if value is None:
        return "–"
    if unit in _WHOLE and value == int(value):
        return quantity(value, unit.removesuffix("s") if value == 1 else unit, DIGITS)
    if unit in _WRITTEN_OUT:
        return quantity(value, unit, DIGITS, binary=binary)
    return f"{_number(value)} {unit}".rstrip()


def together(text: str) -> str:
    """A text whose per cent signs stay on the line of their numbers."""
    return text.replace(" %", "\u00a0%")


def is_same(figure: Figure) -> bool:
    """Whether both sides are known and, to all that is shown, alike."""
    if figure.before is None or figure.after is None:
        return False
    return abs(figure.after - figure.before) <= ALIKE * max(abs(figure.before), abs(figure.after))


def change(figure: Figure, *, binary: bool) -> str:
    """From without to with: +12 %, −55 %, 0.45 ×; shares in points; what was nothing before as what is there now."""
    if figure.before is None or figure.after is None:
        return ""
    if is_same(figure):
        return "same"
    difference = figure.after - figure.before
    sign = "−" if difference < 0 else "+"
    if figure.of.unit == "%":
        return f"{sign}{significant(abs(difference), DIGITS)} points"
    if figure.ratio is None:
        return f"{sign}{written(abs(difference), figure.of.unit, binary=binary)}"
    return change_words(figure.ratio)


def verdict(figure: Figure) -> str:
    """Better or worse; empty where neither way is, or nothing changes."""
    if figure.before is None or figure.after is None or figure.of.better is Better.NEITHER or is_same(figure):
        return ""
    return "better" if (figure.after > figure.before) == (figure.of.better is Better.HIGHER) else "worse"


def times_words(ratio: float | None) -> str:
    """With ÷ without, for a narrow column: 1.48 ×; a dash where it is not known."""
    if ratio is None:
        return "–"
    return "1 ×" if abs(ratio - 1) <= ALIKE else f"{significant(ratio, DIGITS)} ×"


def variant_table(variants: Variants | None, *, binary: bool) -> VariantTable | None:
    """The variants in words; None where there are no more than two sides."""
    if variants is None:
        return None
    units = [column.unit for column in variants.columns]
    return VariantTable(
        [_heading(column.label, column.unit) for column in variants.columns],
        [
            VariantRow(
                together(row.label),
                [_cell(value, unit, binary=binary) for value, unit in zip(row.values, units, strict=True)],
                row.is_here,
                row.note,
            )
            for row in variants.rows
        ],
        any(row.note for row in variants.rows),
    )


def _heading(label: str, unit: str) -> str:
    return label if not unit or unit in _WRITTEN_OUT else f"{label}, {unit}"


def _cell(value: float | None, unit: str, *, binary: bool) -> str:
    if value is None:
        return "–"
    if unit in _WRITTEN_OUT or (unit in _WHOLE and value == int(value)):
        return quantity(value, unit if unit in _WRITTEN_OUT else "", DIGITS, binary=binary)
    return _number(value)


def _number(value: float) -> str:
    """Three digits, whatever the size."""
    return quantity(value, "", DIGITS) if 0 < abs(value) < 1e-4 else significant(value, DIGITS)
