"""Releases of engines that keep the same pace: what the calibration of expected times groups versions by."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from app.catalog.engines import release_number
from app.catalog.rows import CatalogError, Fault

DATA_FILE = Path(__file__).resolve().parent / "data" / "paces.toml"


@dataclass(frozen=True, slots=True)
class Pace:
    """The name of an engine's releases from `since` on."""

    engine: str
    since: tuple[int, ...]
    name: str


@dataclass(frozen=True, slots=True)
class Paces:
    """Every pace, those of an engine from the oldest to the newest."""

    rows: tuple[Pace, ...]

    def pace(self, engine: str, version: str | None) -> str:
        """The name for a release: the newest *numbered* one where none is named; empty for an engine never timed.

        A version that is a year (`2024-05`) stands for the releases of that year.
        """
        own = [row for row in self.rows if row.engine == engine]
        asked = release_number(version) or max((row.since for row in own), default=(0,))
        fitting = [row for row in own if row.since <= asked]
        return fitting[-1].name if fitting else ""


def load_paces(file: Path = DATA_FILE) -> Paces:
    """The rows of the file.

    Raises:
        CatalogError: a row is not to be trusted.
    """
    try:
        rows = tomllib.loads(file.read_text(encoding="utf-8"))["pace"]
        found = tuple(Pace(row["engine"], release_number(row["from"]) or (0,), row["name"]) for row in rows)
    except (KeyError, TypeError, ValueError) as error:
        raise CatalogError(Fault(file, "-", "-", str(error))) from error
    return Paces(tuple(sorted(found, key=lambda row: (row.engine, row.since))))
