"""A number of the lesson: its value, how it is written, and where it comes from.

It is read from an evaluation at a path, or it is worked out of other numbers of the lesson, which it keeps: the sum
that the page prints is the sum that was computed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Union

from app.calc.quantity import quantity, significant

PERCENT, TIMES, MILLISECONDS, BINARY_BYTES, COUNT = "%", "times", "ms", "B (binary)", "count"
_OPERATIONS: Mapping[str, Callable[[float, float], float]] = MappingProxyType(
    {"×": lambda a, b: a * b, "÷": lambda a, b: a / b, "+": lambda a, b: a + b, "−": lambda a, b: a - b}
)
_TIGHT, _LOOSE = frozenset("×÷"), frozenset("+−")
Part = Union["LiveNumber", str]


@dataclass(frozen=True, slots=True)
class LiveNumber:
    """`value` in `unit`, unrounded; `text` is how the page writes it.

    `source` is a path into the evaluation of `case`, or the ids that `parts` names with the signs between them, or the
    publication that states it. `parts` is empty for a number that is read and not worked out.
    """

    id: str
    label: str
    value: float
    unit: str
    text: str
    source: str
    case: str = ""
    parts: tuple[Part, ...] = ()

    @property
    def key(self) -> str:
        """The last part of the id: its name within the chapter."""
        return self.id.rpartition(".")[2]

    @property
    def groups(self) -> list[tuple[tuple[str, ...], "LiveNumber", str]]:
        """The parts cut before each sign, so that a line may break there: signs and opening brackets, the number,
        closing brackets."""
        found: list[tuple[tuple[str, ...], LiveNumber, str]] = []
        before = list[str]()
        for part in self.parts:
            if isinstance(part, LiveNumber):
                found.append((tuple(before), part, ""))
                before = []
            elif part == ")":
                signs, number, closing = found[-1]
                found[-1] = (signs, number, closing + part)
            else:
                before.append(part)
        return found

    @property
    def plain_unit(self) -> str:
        """The unit of `value`, where the written one is scaled."""
        return {PERCENT: "1", TIMES: "1", MILLISECONDS: "s", BINARY_BYTES: "B", COUNT: "1", "params": "1", "": "1"}.get(
            self.unit, self.unit
        )


def written(value: float, unit: str, digits: int) -> str:
    """The value as the page writes it: per cent of a fraction, milliseconds where times are compared, else prefixed."""
    if unit == PERCENT:
        return f"{significant(100 * value, digits)} %"
    if unit == TIMES:
        return significant(value, digits)
    if unit == COUNT:
        return significant(value, digits) if value >= 1 else f"{value:.{digits}g}"
    if unit == MILLISECONDS:
        return f"{significant(1e3 * value, digits)} ms"
    if unit == BINARY_BYTES:
        return quantity(value, "B", digits, binary=True)
    if unit == "params":
        return _billions(value, digits)
    if unit in ("tokens", "tokens/s"):
        return "1 token" if unit == "tokens" and value == 1 else f"{significant(value, digits)} {unit}"
    return quantity(value, unit, digits)


def _billions(value: float, digits: int) -> str:
    """A number of parameters as people say it: 8.03 billion."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if value >= size:
            return f"{significant(value / size, digits)} {word}"
    return significant(value, digits)


def worked(parts: Sequence[Part]) -> float:
    """What the parts amount to: × ÷ before + −, brackets first. An infinite or undefined result is refused.

    Raises:
        ValueError: the parts are no sum, or divide by zero.
    """
    value, rest = _sum(list(parts))
    if rest or not math.isfinite(value):
        raise ValueError("the parts are no sum")
    return value


def source_of(parts: Sequence[Part]) -> str:
    """The parts by their ids, for programs."""
    return " ".join(part if isinstance(part, str) else part.id for part in parts).replace("( ", "(").replace(" )", ")")


def _sum(parts: list[Part]) -> tuple[float, list[Part]]:
    return _chain(parts, _product, _LOOSE)


def _product(parts: list[Part]) -> tuple[float, list[Part]]:
    return _chain(parts, _atom, _TIGHT)


def _chain(
    parts: list[Part], below: Callable[[list[Part]], tuple[float, list[Part]]], signs: frozenset[str]
) -> tuple[float, list[Part]]:
    value, rest = below(parts)
    while rest and isinstance(rest[0], str) and rest[0] in signs:
        operation = _OPERATIONS[rest[0]]
        other, rest = below(rest[1:])
        if operation is _OPERATIONS["÷"] and other == 0:
            raise ValueError("the parts divide by zero")
        value = operation(value, other)
    return value, rest


def _atom(parts: list[Part]) -> tuple[float, list[Part]]:
    if not parts:
        raise ValueError("the parts end in a sign")
    first, rest = parts[0], parts[1:]
    if isinstance(first, LiveNumber):
        return first.value, rest
    if first != "(":
        raise ValueError(f"{first!r} is no number")
    value, rest = _sum(rest)
    if not rest or rest[0] != ")":
        raise ValueError("a bracket is open")
    return value, rest[1:]
