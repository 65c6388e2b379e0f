"""How one number came about: the formula, the user's numbers put into it, each term with its unit, and the source.

A formula is written in the symbols of its terms with × ÷ + − max( ) min( ) ⌊ ⌋ ⌈ ⌉ and numbers, so that a reader can
follow it and a test can compute it: what the formula gives is what the Evaluation says.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from app.calc.quantity import quantity

SYMBOL = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
FUNCTIONS = frozenset({"max", "min"})


@dataclass(frozen=True, slots=True)
class Term:
    """One symbol of a formula: what it is, its value in `unit`, unrounded."""

    symbol: str
    label: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Working:
    """A formula and its terms, before they belong to a number of the Evaluation."""

    formula: str
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The working of the number at `id`, a dotted path into the Evaluation; `value` is that very number."""

    id: str
    label: str
    formula: str
    terms: tuple[Term, ...]
    value: float
    unit: str
    source: str

    @property
    def substituted(self) -> str:
        """The formula with the numbers in place of the symbols, and the result."""
        return self.written(binary=False)

    def written(self, *, binary: bool) -> str:
        """`substituted`, with bytes in GiB instead of GB where `binary`."""
        values = {term.symbol: quantity(term.value, term.unit, binary=binary) for term in self.terms}
        parts = [values.get(part, part) for part in _split(self.formula)]
        return f"{''.join(parts)} = {quantity(self.value, self.unit, binary=binary)}"


@lru_cache(maxsize=256)
def _split(formula: str) -> tuple[str, ...]:
    """The formula cut at its symbols, symbols at the odd places."""
    return tuple(re.split(rf"({SYMBOL.pattern})", formula))
