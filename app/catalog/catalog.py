"""Links between groups of GPUs: what a cache may travel over, and how fast.

Releases of engines that keep the same pace: what the calibration of expected times groups versions by.

The whole catalog, loaded once and never changed, with a version that follows its contents.
"""

import hashlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from app.calc.accelerator import Accelerator
from app.calc.model.architecture import Architecture
from app.calc.model.parameters import WeightPlan
from app.calc.quantity import GB
from app.calc.time.expected.calibration import Calibration
from app.catalog.accelerators import AcceleratorRecord, load_accelerators
from app.catalog.calibration import load_calibration
from app.catalog.engines import EngineRecord, load_engines, release_number
from app.catalog.measurements import Measurement, load_measurements
from app.catalog.models import ModelRecord, load_models
from app.catalog.rows import CatalogError, Fault

DATA_FILE = Path(__file__).resolve().parent / "data" / "links.toml"
BITS_PER_BYTE = 8


@dataclass(frozen=True, slots=True)
class Link:
    """One kind of link; the rate is that of one GPU's part, in one direction."""

    id: str
    name: str
    bytes_per_s: float
    source: str


def load_links(file: Path = DATA_FILE) -> Mapping[str, Link]:
    """Every link by id.

    Raises:
        CatalogError: a row is not to be trusted.
    """
    found: dict[str, Link] = {}
    try:
        for row in tomllib.loads(file.read_text(encoding="utf-8"))["link"]:
            rate = row["gbit_per_s"] * GB / BITS_PER_BYTE
            link = Link(row["id"], row["name"], rate, row["source"])
            if link.id in found or not rate > 0 or not link.source.strip() or set(row) - _KEYS:
                raise ValueError(f"{link.id}: twice, without a rate or a source, or with a key that nothing reads")
            found[link.id] = link
    except (KeyError, TypeError, ValueError) as error:
        raise CatalogError(Fault(file, "-", "-", str(error))) from error
    return MappingProxyType(found)


_KEYS = frozenset({"id", "name", "gbit_per_s", "source"})


PACES_DATA_FILE = Path(__file__).resolve().parent / "data" / "paces.toml"


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


def load_paces(file: Path = PACES_DATA_FILE) -> Paces:
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


DATA_FOLDER = Path(__file__).resolve().parent / "data"
VERSION_DIGITS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Catalog:
    """Models, accelerators and engines by id; `architectures`, `plans` and `devices` are for the calculators."""

    models: Mapping[str, ModelRecord]
    accelerators: Mapping[str, AcceleratorRecord]
    engines: Mapping[str, EngineRecord]
    architectures: Mapping[str, Architecture]
    plans: Mapping[str, WeightPlan]
    devices: Mapping[str, Accelerator]
    measurements: Sequence[Measurement]
    calibration: Calibration | None
    paces: Paces
    links: Mapping[str, Link]
    version: str


@cache
def load_catalog() -> Catalog:
    """The catalog that ships with the product, read once a process: it never changes.

    Raises:
        CatalogError: a row is not to be trusted.
    """
    models, accelerators = load_models(), load_accelerators()
    return Catalog(
        models=models,
        accelerators=accelerators,
        engines=load_engines(),
        architectures=MappingProxyType({id_: record.architecture for id_, record in models.items()}),
        plans=MappingProxyType({id_: record.native_plan for id_, record in models.items()}),
        devices=MappingProxyType({id_: record.accelerator for id_, record in accelerators.items()}),
        measurements=load_measurements(),
        calibration=load_calibration(),
        paces=load_paces(),
        links=load_links(),
        version=catalog_version(data_files()),
    )


def data_files() -> list[Path]:
    """Every file that the catalog is read from, in the order in which the version digests them."""
    return sorted((*DATA_FOLDER.rglob("*.toml"), *DATA_FOLDER.rglob("*.csv")))


def catalog_version(files: Iterable[Path]) -> str:
    """A digest of the data files, so that no fact can change without the version changing."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:VERSION_DIGITS]
