"""JSON as the standard has it: no NaN, no infinity, no overflow, no key twice, no half characters, no deep nesting.

Text that people typed, made safe to store and to show.

Rows as comma-separated values that no spreadsheet takes for formulas.
"""

import csv
import io
import json
import math
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

MAX_DEPTH = 20


class StrictJsonError(ValueError):
    """What is wrong with the text, in words fit for its author. Never repeats the text."""


def loads(text: str | bytes, *, constants_are_text: bool = False) -> Any:
    """The value that `text` stands for.

    Args:
        text: JSON in UTF-8.
        constants_are_text: read `NaN` and `Infinity`, which some published configuration files hold, as texts.

    Raises:
        StrictJsonError: not JSON, or JSON with something that could not be answered in JSON again.
    """
    try:
        # Left to itself the parser would guess UTF-16 and UTF-32 too, and let half characters through in them.
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        value = json.loads(
            text,
            parse_constant=str if constants_are_text else _refuse_constant,
            parse_float=_finite,
            object_pairs_hook=object_without_twins,
        )
    except StrictJsonError:
        raise
    except json.JSONDecodeError as error:
        raise StrictJsonError(f"not valid JSON at line {error.lineno}, column {error.colno}.") from error
    except (UnicodeDecodeError, ValueError) as error:  # not UTF-8; an integer of thousands of digits
        raise StrictJsonError("not valid JSON: bad encoding or an absurd number.") from error
    except RecursionError as error:
        raise StrictJsonError(f"nested deeper than {MAX_DEPTH} levels.") from error
    if _depth(value) > MAX_DEPTH:
        raise StrictJsonError(f"nested deeper than {MAX_DEPTH} levels.")
    if "\\u" in text:
        _refuse_half_characters(value)
    return value


def dumps(value: Any) -> bytes:
    """`value` as JSON.

    Raises:
        ValueError: a NaN or an infinity would leave the house.
    """
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def _refuse_constant(name: str) -> Any:
    raise StrictJsonError(f"{name} is not JSON.")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise StrictJsonError("a number is too large for a double.")
    return value


def object_without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of its pairs. Raises StrictJsonError where a key is there twice."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise StrictJsonError("an object has the same key twice.")
    return result


def _refuse_half_characters(value: Any) -> None:
    """An escape such as \\ud800 alone is half a character: it could not be written out again."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise StrictJsonError("a text holds half a character (a lone surrogate).") from error


def _depth(value: Any) -> int:
    """Levels of nesting, counted without recursion."""
    deepest, level = 0, [value]
    while level:
        level = [
            child
            for parent in level
            if isinstance(parent, (dict, list))
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        deepest += 1
        if deepest > MAX_DEPTH + 1:
            break
    return deepest


_REFUSED = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # controls, bidi marks, surrogates, private use, unassigned
_JOINERS = {"\u200c", "\u200d"}  # needed inside words of several scripts and inside emoji


def clean_text(text: str) -> str:
    """One line of `text` in normal form C, trimmed, without control, bidirectional or unassigned characters.

    Raises:
        ValueError: nothing visible is left.
    """
    cleaned = _without_refused(text, keep=_JOINERS)
    if not cleaned.strip("".join(_JOINERS)):
        raise ValueError("Nothing visible is left of this text.")
    return cleaned


def clean_notes(text: str) -> str:
    """The same for several lines, which may be empty."""
    return _without_refused(text.replace("\r\n", "\n"), keep=_JOINERS | {"\n"})


def _without_refused(text: str, keep: set[str]) -> str:
    kept = "".join(c for c in text if c in keep or unicodedata.category(c) not in _REFUSED)
    # Normal form last: what was removed may have stood between a letter and its mark.
    return unicodedata.normalize("NFC", kept).strip()


def within(text: str, most: int) -> str:
    """`text`, unless it is too long. To be asked after cleaning: normal form C can lengthen a text.

    Raises:
        ValueError: more than `most` characters.
    """
    if len(text) > most:
        raise ValueError(f"At most {most:,} characters.")
    return text


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
