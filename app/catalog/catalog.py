"""The whole catalog, loaded once and never changed, with a version that follows its contents."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from app.calc.accelerator import Accelerator
from app.calc.architecture import Architecture
from app.calc.expected.calibration import Calibration
from app.calc.weight_plan import WeightPlan
from app.catalog.accelerators import AcceleratorRecord, load_accelerators
from app.catalog.calibration import load_calibration
from app.catalog.engines import EngineRecord, load_engines
from app.catalog.links import Link, load_links
from app.catalog.measurements import Measurement, load_measurements
from app.catalog.models import ModelRecord, load_models
from app.catalog.paces import Paces, load_paces

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
