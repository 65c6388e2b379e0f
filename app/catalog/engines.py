"""The inference engines a scenario can name."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.catalog.rows import read_catalog

DATA_FILE = Path(__file__).resolve().parent / "data" / "engines.toml"


@dataclass(frozen=True, slots=True)
class EngineRecord:
    """An engine, and the name, default and meaning of its memory setting."""

    id: str
    name: str
    memory_setting: str
    default_memory_utilization: float
    fraction_of: str
    sources: tuple[str, ...]


def load_engines(file: Path = DATA_FILE) -> Mapping[str, EngineRecord]:
    """Every engine by id.

    Raises:
        CatalogError: a row is not to be trusted; names the file, the row and the field.
    """
    return read_catalog(file, "engine", EngineRecord)
