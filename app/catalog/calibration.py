"""The fitted efficiencies as the calculators read them; `make calibrate` writes the file.

What each measurement was predicted as by fits that had not seen it; `make calibrate` writes the file.
"""

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from app.calc.time.expected.calibration import Calibration, Interval, Law
from app.catalog.rows import CatalogError, Fault

DATA_FILE = Path(__file__).resolve().parent / "data" / "calibration.toml"
SECTIONS = ("calibration", "interval", "interval_unseen")


def load_calibration(file: Path = DATA_FILE) -> Calibration | None:
    """The calibration of the file; None where there is none yet, which leaves the ceilings alone.

    Raises:
        CatalogError: the file cannot be read as one.
    """
    if not file.exists():
        return None
    try:
        return _calibration(tomllib.loads(file.read_text(encoding="utf-8")))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CatalogError(Fault(file, "-", "-", repr(error))) from error


def _calibration(document: dict[str, Any]) -> Calibration:
    head = document["calibration"]
    stacks = {name: laws for name, laws in document.items() if name not in SECTIONS}
    return Calibration(
        version=head["version"],
        laws=MappingProxyType({stack: _laws(laws) for stack, laws in stacks.items()}),
        families=frozenset(head["families"]),
        engines=frozenset(head["engines"]),
        intervals=_intervals(document["interval"]),
        intervals_unseen=_intervals(document["interval_unseen"]),
        longest_request=head["longest_request_tokens"],
        largest_batch=head["largest_batch"],
    )


def _laws(laws: dict[str, Any]) -> MappingProxyType[str, Law]:
    return MappingProxyType({name: Law({axis: _table(t) for axis, t in axes.items()}) for name, axes in laws.items()})


def _table(table: dict[str, Any]) -> MappingProxyType[str, float]:
    return MappingProxyType({key: _positive(cell["value"]) for key, cell in table.items()})


def _intervals(section: dict[str, Any]) -> MappingProxyType[str, Interval]:
    found = {name: Interval(_positive(row["low"]), _positive(row["high"]), row["n"]) for name, row in section.items()}
    return MappingProxyType(found)


def _positive(value: float) -> float:
    if not 0 < value < float("inf"):
        raise ValueError(f"{value} is no efficiency")
    return float(value)


CROSS_VALIDATED_DATA_FILE = Path(__file__).resolve().parent / "data" / "cross_validated.csv"


@dataclass(frozen=True, slots=True)
class Blind:
    """Predictions in the unit of the measurement: without its model on its accelerator, without the accelerator's
    family.
    """

    held_out: float
    unseen: float


def load_cross_validated(file: Path = CROSS_VALIDATED_DATA_FILE) -> Mapping[str, Blind]:
    """The predictions by the measurement's id."""
    with file.open(encoding="utf-8", newline="") as lines:
        found = {row["id"]: Blind(float(row["predicted"]), float(row["unseen"])) for row in csv.DictReader(lines)}
    return MappingProxyType(found)
