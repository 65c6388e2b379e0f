"""Links between groups of GPUs: what a cache may travel over, and how fast."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from app.calc.units import GB
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
