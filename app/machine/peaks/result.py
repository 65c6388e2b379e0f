"""Measured roofs: what this machine's card reached, with what, when and in which state; and the file of them."""

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from pydantic import TypeAdapter

from app.calc.dtypes import Dtype
from app.checkpoint.text import StrictJsonError, dumps, loads
from app.machine.peaks.outcome import ProductRate, Skipped, Stream, StreamRate
from app.machine.probes.accelerator import CELSIUS, MEGAHERTZ, WATTS, CardReadings, text
from app.machine.probes.reading import Absence, Reading, in_unit, units_of

MOST_CARD_BYTES = 2**46
MOST_VERSIONS = 8

Kind = Stream | Dtype
"""What a roof is of: a stream over memory, or products in a number format."""


@dataclass(frozen=True, slots=True)
class CardState:
    """What the driver said of the card at one moment; every reading has a value or says why not."""

    sm_clock_mhz: Reading[int] = in_unit(MEGAHERTZ)
    memory_clock_mhz: Reading[int] = in_unit(MEGAHERTZ)
    power_draw_w: Reading[float] = in_unit(WATTS)
    power_limit_w: Reading[float] = in_unit(WATTS)
    temperature_c: Reading[int] = in_unit(CELSIUS)
    throttle_reasons: Reading[tuple[str, ...]] = in_unit("")

    @classmethod
    def of(cls, card: CardReadings) -> "CardState":
        """What is kept of the card's readings."""
        return cls(**{name: getattr(card, name) for name in units_of(cls)})

    @classmethod
    def unknown(cls, absence: Absence) -> "CardState":
        """Nothing could be read, for one reason."""
        return cls(**{name: Reading.missing(absence, unit) for name, unit in units_of(cls).items()})

    def document(self) -> dict[str, object]:
        return {name: getattr(self, name).document() for name in units_of(CardState)}


@dataclass(frozen=True, slots=True)
class MeasuredRoofs:
    """One measurement of one card, which is known by its name and its memory: no UUID, no name of the machine.

    `measured_at` is aware, in UTC. `versions` are those of the library, of what it was built for, and of the driver.
    `before` and `after` are the card at rest; `under_load` is the reading with the highest power while it worked.

    Raises:
        ValueError: the instant is naive, there is no roof, or name, memory or versions are none that can be shown.
    """

    card_name: str
    memory_total_bytes: int
    measured_at: datetime
    library: str
    versions: Mapping[str, str]
    before: CardState
    under_load: CardState
    after: CardState
    streams: tuple[StreamRate, ...]
    products: tuple[ProductRate, ...]
    skipped: tuple[Skipped, ...] = ()

    def __post_init__(self) -> None:
        """Refuses what is no measurement."""
        if self.measured_at.utcoffset() is None:
            raise ValueError("A card is measured at an aware instant.")
        if not self.streams and not self.products:
            raise ValueError("A measurement has a roof.")
        if not 0 < self.memory_total_bytes <= MOST_CARD_BYTES or len(self.versions) > MOST_VERSIONS:
            raise ValueError("A card has memory, and no more than there is.")
        for shown in (self.card_name, self.library, *self.versions, *self.versions.values()):
            if text(shown).value != shown:
                raise ValueError("A name is one line of visible characters.")

    @property
    def card(self) -> tuple[str, int]:
        """What the card is known by."""
        return self.card_name, self.memory_total_bytes

    @property
    def kinds(self) -> frozenset[Kind]:
        """What there are roofs of."""
        return frozenset[Kind]({rate.stream for rate in self.streams} | {rate.dtype for rate in self.products})

    def without(self, kinds: frozenset[Kind]) -> "MeasuredRoofs | None":
        """The same without these; None where nothing is left."""
        streams = tuple(rate for rate in self.streams if rate.stream not in kinds)
        products = tuple(rate for rate in self.products if rate.dtype not in kinds)
        return replace(self, streams=streams, products=products) if streams or products else None

    def document(self) -> dict[str, object]:
        return {
            "card_name": self.card_name,
            "memory_total_bytes": self.memory_total_bytes,
            "measured_at": self.measured_at.isoformat(timespec="seconds"),
            "library": self.library,
            "versions": dict(self.versions),
            "streams": [
                {
                    "stream": rate.stream.value,
                    "array_bytes": rate.array_bytes,
                    "moved_bytes": rate.moved_bytes,
                    "iterations": rate.timing.iterations,
                    "best_bytes_per_s": rate.best_bytes_per_s,
                    "median_bytes_per_s": rate.median_bytes_per_s,
                }
                for rate in self.streams
            ],
            "products": [
                {
                    "dtype": rate.dtype.value,
                    "size": rate.size,
                    "iterations": rate.timing.iterations,
                    "best_flops_per_s": rate.best_flops_per_s,
                    "median_flops_per_s": rate.median_flops_per_s,
                }
                for rate in self.products
            ],
            "skipped": [
                {"kind": skipped.kind.value, "size": skipped.size, "code": skipped.reason.value}
                | {"message": skipped.reason.message}
                for skipped in self.skipped
            ],
            "before": self.before.document(),
            "under_load": self.under_load.document(),
            "after": self.after.document(),
        }


@dataclass(frozen=True, slots=True)
class Achieved:
    """The roofs of one card, to be drawn beside the vendor's: the best pass of each kind. None: not measured.

    The bandwidth is that of the faster of copy and triad, a rate that of the fastest size.
    """

    bandwidth_bytes_per_s: float | None
    flops_per_s: Mapping[Dtype, float]


def achieved(measured: Iterable[MeasuredRoofs]) -> Achieved:
    """The roofs in measurements of one card."""
    runs = tuple(measured)
    streams = [rate.best_bytes_per_s for run in runs for rate in run.streams]
    products: dict[Dtype, float] = {}
    for rate in (rate for run in runs for rate in run.products):
        products[rate.dtype] = max(rate.best_flops_per_s, products.get(rate.dtype, 0.0))
    return Achieved(max(streams, default=None), MappingProxyType(products))


logger = logging.getLogger("tokenroof.microbench")

FILE_NAME = "measured_roofs.json"
MOST_RUNS = 64
MOST_FILE_BYTES = 2 * 1024 * 1024
_VERSION = 1
_RUN = TypeAdapter(MeasuredRoofs)


class RoofStore:
    """The file; every call reads or writes it whole. Several processes may share it: each write replaces it at once."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME

    def read(self) -> tuple[MeasuredRoofs, ...]:
        """All measurements, the newest first. A broken file is as good as none; a broken entry is left out."""
        found = [run for entry in self._entries() if (run := _run_of(entry)) is not None]
        return tuple(sorted(found, key=lambda run: run.measured_at, reverse=True))

    def add(self, new: MeasuredRoofs) -> None:
        """Keeps it in the place of what was known of the same card and kinds; beyond `MOST_RUNS` the oldest go.

        Raises:
            OSError: it cannot be written; what was there is still there.
        """
        others = [run.without(new.kinds) if run.card == new.card else run for run in self.read()]
        kept = [new, *(run for run in others if run is not None)][:MOST_RUNS]
        body = dumps({"version": _VERSION, "roofs": [_RUN.dump_python(run, mode="json") for run in kept]})
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = self._path.with_name(f"{FILE_NAME}.{os.getpid()}.partial")
        try:
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self._path)
        finally:
            partial.unlink(missing_ok=True)

    def _entries(self) -> list[object]:
        try:
            with self._path.open("rb") as file:
                body = file.read(MOST_FILE_BYTES + 1)
        except FileNotFoundError:
            return []
        except OSError as error:
            logger.warning("%s cannot be read (%s)", FILE_NAME, error.strerror)
            return []
        try:
            told = loads(body) if len(body) <= MOST_FILE_BYTES else None
        except StrictJsonError as error:
            logger.warning("%s is passed over: %s", FILE_NAME, error)
            return []
        if not isinstance(told, dict) or told.get("version") != _VERSION or not isinstance(told.get("roofs"), list):
            logger.warning("%s is passed over: it is none that this release wrote.", FILE_NAME)
            return []
        entries: list[object] = told["roofs"][:MOST_RUNS]
        return entries


def _run_of(entry: object) -> MeasuredRoofs | None:
    try:
        return _RUN.validate_json(dumps(entry), strict=True)
    except ValueError:
        logger.warning("an entry of %s is passed over: it is no measurement.", FILE_NAME)
        return None
