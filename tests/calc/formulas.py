"""Reads formulas and written numbers back: what a formula gives, and what a text like "16.0605 GB" stands for."""

import math
import re
from collections.abc import Callable, Mapping

SYMBOL = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]\d+)?"
_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
UNITS: dict[str, tuple[str, float]] = {
    **{f"{prefix}{unit}": (unit, f) for unit in ("B", "FLOP", "B/s", "FLOP/s", "W") for prefix, f in _PREFIXES.items()},
    **{f"{prefix}B": ("B", factor) for prefix, factor in _BINARY.items()},
    **{written: ("s", factor) for written, factor in _SECONDS.items()},
    **{unit: (unit, 1.0) for unit in ("FLOP/B", "tokens", "sequences", "tokens/s", "requests/s", "J")},
}
_UNIT = "|".join(re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True))
WRITTEN = re.compile(rf"(?P<dollar>\$)?(?P<number>-?{_NUMBER})(?: (?P<unit>{_UNIT})(?![A-Za-z/]))?")
_OPERATORS = set("×÷−+(),⌊⌋⌈⌉")


class NotAFormulaError(ValueError):
    """The text is not one of numbers, known symbols, × ÷ + − max( ) min( ) ⌊ ⌋ ⌈ ⌉ and parentheses."""


def reread(text: str) -> tuple[float, str]:
    """The value and the plain unit of a written number."""
    match = WRITTEN.fullmatch(text)
    if match is None:
        raise NotAFormulaError(text)
    return _value(match)


def computed(formula: str, values: Mapping[str, float]) -> float:
    """What the formula gives with the symbols' values, from left to right, products before sums."""
    return _Reader(formula, values).read()


def substituted_value(text: str) -> float:
    """What the left side of a substituted formula gives, units taken into account."""
    return _Reader(text, {}).read()


def symbols(formula: str) -> set[str]:
    """The symbols that stand in the formula."""
    return set(SYMBOL.findall(formula)) - {"max", "min"}


def _value(match: re.Match[str]) -> tuple[float, str]:
    number = float(match["number"].replace(",", ""))
    if match["dollar"]:
        return number, "$"
    unit, factor = UNITS.get(match["unit"] or "", ("", 1.0))
    return number * factor, unit


class _Reader:
    def __init__(self, text: str, values: Mapping[str, float]) -> None:
        self._tokens = list(_tokens(text, values))
        self._next = 0

    def read(self) -> float:
        value = self._sum()
        if self._next != len(self._tokens):
            raise NotAFormulaError(f"after the end: {self._tokens[self._next :]}")
        return value

    def _peek(self) -> str | float | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, *wanted: str) -> str | float:
        token = self._peek()
        if token is None or (wanted and token not in wanted):
            raise NotAFormulaError(f"{token!r} where {wanted or 'a number'} is needed")
        self._next += 1
        return token

    def _sum(self) -> float:
        return self._chain(self._product, {"+": lambda a, b: a + b, "−": lambda a, b: a - b})

    def _product(self) -> float:
        return self._chain(self._factor, {"×": lambda a, b: a * b, "÷": lambda a, b: a / b})

    def _chain(self, part: Callable[[], float], signs: Mapping[str, Callable[[float, float], float]]) -> float:
        value = part()
        while self._peek() in signs:
            sign = str(self._take(*signs))
            value = signs[sign](value, part())
        return value

    def _factor(self) -> float:
        token = self._take()
        if isinstance(token, float):
            return token
        if token == "(":
            return self._closed(")")
        if token == "⌊":
            return float(math.floor(self._closed("⌋")))
        if token == "⌈":
            return float(math.ceil(self._closed("⌉")))
        if token in ("max", "min"):
            self._take("(")
            found = [self._sum()]
            while self._take(",", ")") == ",":
                found.append(self._sum())
            return max(found) if token == "max" else min(found)
        raise NotAFormulaError(f"{token!r} where a number is needed")

    def _closed(self, bracket: str) -> float:
        value = self._sum()
        self._take(bracket)
        return value


def _tokens(text: str, values: Mapping[str, float]) -> list[str | float]:
    found: list[str | float] = []
    place = 0
    while place < len(text):
        symbol, number = SYMBOL.match(text, place), WRITTEN.match(text, place)
        if text[place] == " ":
            place += 1
        elif text[place] in _OPERATORS:
            found.append(text[place])
            place += 1
        elif symbol is not None:
            name = symbol[0]
            if name not in values and name not in ("max", "min"):
                raise NotAFormulaError(f"a bare symbol: {name}")
            found.append(float(values[name]) if name in values else name)
            place = symbol.end()
        elif number is not None:
            found.append(_value(number)[0])
            place = number.end()
        else:
            raise NotAFormulaError(f"{text[place]!r} at {place} of {text!r}")
    return found
