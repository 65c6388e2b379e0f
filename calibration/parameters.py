"""Every entry of every table as one parameter: its place, where it starts, and how far it may go."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.calc.time.expected.calibration import Keys
from app.calc.time.expected.reached import Format

PRIORS = Path(__file__).resolve().parent / "priors.toml"
Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell of a table. `deviation` is that of the logarithm before anything was measured."""

    stack: str
    law: str
    axis: str
    key: str
    value: float
    deviation: float
    evidence: str


@dataclass(frozen=True, slots=True)
class Parameters:
    """All entries; a vector of as many logarithms moves them."""

    entries: tuple[Entry, ...]

    @property
    def deviations(self) -> Vector:
        """Prior deviations of the logarithms."""
        return np.array([entry.deviation for entry in self.entries])

    def keys_of(self, stack: str, law: str, axis: str) -> frozenset[str]:
        """The entries of one table."""
        return frozenset(e.key for e in self.entries if (e.stack, e.law, e.axis) == (stack, law, axis))

    def column(self, law: str, keys: Sequence[Keys], formats: Sequence[Format]) -> "Column":
        """The law's value for each pair of keys and format, as a function of the moves."""
        places = {(e.stack, e.axis, e.key): place for place, e in enumerate(self.entries) if e.law == law}
        axes = sorted({axis for _, axis, _ in places})
        index = np.full((len(axes), len(keys)), -1)
        base = np.zeros(len(keys))
        for row, axis in enumerate(axes):
            for column, (key, form) in enumerate(zip(keys, formats, strict=True)):
                tried = key.of(axis, form)
                found = next((places[key.stack, axis, t] for t in tried if (key.stack, axis, t) in places), -1)
                index[row, column] = found
                if found >= 0:
                    base[column] += np.log(self.entries[found].value)
        return Column(base, index)


@dataclass(frozen=True, slots=True)
class Column:
    """Logarithms of the starting values, and the moves that each value adds; −1 adds nothing."""

    base: Vector
    index: NDArray[np.int64]

    def values(self, moves: Vector) -> Vector:
        """The values after the moves."""
        padded = np.append(moves, 0.0)
        result: Vector = np.exp(self.base + padded[self.index].sum(axis=0))
        return result


def read_parameters(file: Path = PRIORS) -> Parameters:
    """The entries of the priors' file, in its order."""
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    return Parameters(
        tuple(
            Entry(stack, law, axis, key, cell["value"], cell["sd"], table["evidence"])
            for stack, laws in document.items()
            for law, axes in laws.items()
            for axis, table in axes.items()
            for key, cell in table.items()
            if key != "evidence"
        )
    )
