"""The accelerator catalog: TOML files read into checked, immutable records."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from app.calc.accelerator import Accelerator
from app.calc.dtypes import Dtype
from app.calc.quantity import GB, GIB, MIB, TERA
from app.catalog.models import family_of, memory_kind_of
from app.catalog.rows import READ_ONLY, read_catalog

DATA_FOLDER = Path(__file__).resolve().parent / "data" / "accelerators"
DRIVER_GIB = 0.36
DRIVER_SHARE = 0.0022
"""What NVIDIA's driver keeps: 0.36 GiB and 0.22 % of the card; 15 cards of start-up logs lie within 0.4 GiB of it."""


class Confidence(StrEnum):
    """A: two sources and a reproduced rate; B: one source and the vendor's sheet; C: derived or secondary only."""

    A = "A"
    B = "B"
    C = "C"


class Status(StrEnum):
    """Whether the device was on sale or only announced when the row was written."""

    RELEASED = "released"
    ANNOUNCED = "announced"


class Kind(StrEnum):
    """What the device is sold for; integrated: a personal computer's own chip, whose memory it shares with the CPU."""

    DATA_CENTER = "data-center"
    WORKSTATION = "workstation"
    CONSUMER = "consumer"
    INTEGRATED = "integrated"
    EDGE = "edge"


# The classes below are the schema of the files: a row is checked against their annotations, a field with a default may
# be left out. Units stay those of the files; only `AcceleratorRecord.accelerator` turns them into SI units.


@dataclass(frozen=True, slots=True)
class Memory:
    """Capacity on the label in GB, in MiB as the driver reports it, and in GiB as an engine sees it; peak bandwidth in
    decimal GB/s, L2 in MB."""

    type: str
    marketed_gb: float
    bandwidth_gb_per_s: float
    reported_mib: int | None = None
    seen_gib: float | None = None
    l2_mb: float | None = None


@dataclass(frozen=True, slots=True)
class Compute:
    """Number of multiprocessors, compute units or cores, and the clock behind the rates in MHz."""

    units: int | None = None
    boost_mhz: float | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """Fastest link to the next accelerator, in decimal GB/s for one direction and for both, and the host's PCIe."""

    name: str
    one_way_gb_per_s: float | None = None
    both_ways_gb_per_s: float | None = None
    pcie_gen: int | None = None
    pcie_lanes: int | None = None
    max_in_node: int | None = None


@dataclass(frozen=True, slots=True)
class Power:
    """Board power limit in W."""

    tdp_w: float | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """Rent in USD an hour for one device, with where and when it was seen."""

    usd_per_hour: float
    basis: str


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A fact on which sources differ: the values seen, the one kept, and why."""

    fact: str
    seen: tuple[float | str, ...]
    kept: float | str
    reason: str


@dataclass(frozen=True, slots=True)
class AcceleratorRecord:
    """All facts of one device with their sources; an unknown value is None or absent, never 0."""

    id: str
    name: str
    vendor: str
    architecture: str
    year: int
    status: Status
    kind: Kind
    confidence: Confidence
    sources: tuple[str, ...]
    caveats: tuple[str, ...]
    memory: Memory
    dense_tflops: Annotated[Mapping[Dtype, float], READ_ONLY]
    link: Link
    compute: Compute = Compute()
    power: Power = Power()
    price: Price | None = None
    uncertain: tuple[str, ...] = ()
    disagreements: Annotated[tuple[Disagreement, ...], Field(alias="disagreement")] = ()

    @property
    def accelerator(self) -> Accelerator:
        """The same device for the calculators: bytes, bytes/s and FLOP/s; the link is one direction."""
        memory, one_way = self.memory, self.link.one_way_gb_per_s
        reported = None if memory.reported_mib is None else memory.reported_mib * MIB
        return Accelerator(
            id=self.id,
            name=self.name,
            memory_marketed_bytes=memory.marketed_gb * GB,
            memory_reported_bytes=reported,
            bandwidth_bytes_per_s=memory.bandwidth_gb_per_s * GB,
            peak_flops_per_s=MappingProxyType({dtype: rate * TERA for dtype, rate in self.dense_tflops.items()}),
            tdp_w=self.power.tdp_w,
            price_usd_per_hour=None if self.price is None else self.price.usd_per_hour,
            link_bytes_per_s_one_way=None if one_way is None else one_way * GB,
            memory_seen_bytes=self._seen_bytes(reported),
            shares_memory="unified" in memory.type,
            family=family_of(self.architecture, is_consumer=self.kind is Kind.CONSUMER),
            memory_kind=memory_kind_of(memory.type),
        )

    def _seen_bytes(self, reported: int | None) -> float | None:
        """As logged; or, of NVIDIA's cards, what the driver is known to keep taken off. None where nothing is known."""
        if self.memory.seen_gib is not None:
            return self.memory.seen_gib * GIB
        if reported is None or self.vendor != "NVIDIA":
            return None
        return seen_of_reported(reported)

    def fact(self, path: str) -> float | str | None:
        """Value at one of the paths in `FACTS`, in the unit of its name; None where unknown, KeyError for others."""
        group, key = FACTS[path]
        if group == "dense_tflops":
            return self.dense_tflops.get(Dtype(key))
        value: float | str | None = getattr(getattr(self, group), key, None)  # the group itself may be None: no price
        return value


_GROUPS = {"memory": Memory, "compute": Compute, "link": Link, "power": Power, "price": Price}
_KEYS = {group: [f.name for f in fields(kind)] for group, kind in _GROUPS.items()} | {"dense_tflops": list(Dtype)}
FACTS = MappingProxyType({f"{group}.{key}": (group, key) for group, keys in _KEYS.items() for key in keys})


def seen_of_reported(reported_bytes: float) -> float:
    """What an engine sees of the memory that NVIDIA's driver reports, where no log tells."""
    return max(0.5 * reported_bytes, (1 - DRIVER_SHARE) * reported_bytes - DRIVER_GIB * GIB)


def load_accelerators(folder: Path = DATA_FOLDER) -> Mapping[str, AcceleratorRecord]:
    """Every device of the folder's TOML files by id, in the order of file names and of rows.

    Raises:
        CatalogError: a row is not to be trusted; names the file, the row and the field.
    """
    return read_catalog(folder, "accelerator", AcceleratorRecord, _check)


def _check(record: AcceleratorRecord) -> Iterator[tuple[str, str]]:
    """What no cell can tell alone."""
    one_way, both_ways = record.link.one_way_gb_per_s or 0, record.link.both_ways_gb_per_s or math.inf
    if one_way > both_ways:
        yield "link.one_way_gb_per_s", f"{one_way} is more than both ways together, {both_ways}"
    for number, path in enumerate(record.uncertain, start=1):
        if path not in FACTS:
            yield f"uncertain[{number}]", f"no fact is called {path!r}"
    for number, entry in enumerate(record.disagreements, start=1):
        inside = f"disagreement[{number}]"
        if entry.fact not in FACTS:
            yield f"{inside}.fact", f"no fact is called {entry.fact!r}"
            continue
        if len(set(entry.seen)) < 2:
            yield f"{inside}.seen", "takes two different values to disagree"
        if entry.kept != (own := record.fact(entry.fact)):
            yield f"{inside}.kept", f"{entry.kept} is kept, but {entry.fact} of the row is {own}"
