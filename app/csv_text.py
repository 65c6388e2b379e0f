"""Rows as comma-separated values that no spreadsheet takes for formulas."""

import csv
import io
from collections.abc import Iterable, Sequence

Cell = str | int | float | bool | None
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t")


def csv_text(rows: Iterable[Sequence[Cell]]) -> str:
    """The lines of `rows`, each with its line feed; numbers stay numbers."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([_harmless(cell) for cell in row] for row in rows)
    return buffer.getvalue()


def _harmless(cell: Cell) -> Cell:
    """A text that a spreadsheet would take for a formula gets a leading apostrophe."""
    if not isinstance(cell, str):
        return cell
    # A carriage return would stand in the file without quotes, and end the line for some readers.
    text = cell.replace("\r", " ")
    return f"'{text}" if text.startswith(_FORMULA_SIGNS) else text
