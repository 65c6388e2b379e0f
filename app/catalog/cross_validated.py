"""What each measurement was predicted as by fits that had not seen it; `make calibrate` writes the file."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

DATA_FILE = Path(__file__).resolve().parent / "data" / "cross_validated.csv"


@dataclass(frozen=True, slots=True)
class Blind:
    """Predictions in the unit of the measurement: without its model on its accelerator, without the accelerator's
    family.
    """

    held_out: float
    unseen: float


def load_cross_validated(file: Path = DATA_FILE) -> Mapping[str, Blind]:
    """The predictions by the measurement's id."""
    with file.open(encoding="utf-8", newline="") as lines:
        found = {row["id"]: Blind(float(row["predicted"]), float(row["unseen"])) for row in csv.DictReader(lines)}
    return MappingProxyType(found)
