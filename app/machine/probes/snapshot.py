"""What a probe is, and what it hands over: the readings of one source, frozen at one instant."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, Protocol

from app.machine.probes.accelerator import BYTES, PERCENT, CardReadings
from app.machine.probes.reading import Absence, Reading, in_unit, units_of
from app.machine.probes.servers.readings import ServerReadings


@dataclass(frozen=True, slots=True)
class HostReadings:
    """The machine at one instant: no name of it, and nothing about its processes.

    `cpu_percent` is the mean over the logical processors since the last sample. `memory_available_bytes` is what a new
    process could be given without swapping.
    """

    cpu_percent: Reading[float] = in_unit(PERCENT)
    logical_cpus: Reading[int] = in_unit("")
    memory_total_bytes: Reading[int] = in_unit(BYTES)
    memory_available_bytes: Reading[int] = in_unit(BYTES)
    swap_used_bytes: Reading[int] = in_unit(BYTES)

    def document(self) -> dict[str, object]:
        return {name: getattr(self, name).document() for name in units_of(HostReadings)}


Kind = Literal["cards", "host", "server"]
STALE_AFTER_POLLS = 2


def utc_now() -> datetime:
    """The present instant, aware, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSnapshot:
    """What one source said at `taken_at` (aware, UTC).

    `source` is unique among the probes of a server ("nvidia", "host", "server-1"), `label` what a person calls it,
    `kind` says which of `cards`, `host` and `server` it may have. `state` is "absent" where the source cannot be read
    at all, and then `absence` says why. After `missed_polls` failures in a row a snapshot is an earlier good one, whose
    `absence` says why there is no newer; from the second failure on it is `stale`. `families` are the names that an
    unrecognised server reports.

    Raises:
        ValueError: the instant is naive, or state, missed polls and absence contradict each other.
    """

    source: str
    label: str
    kind: Kind
    state: Literal["ok", "absent"]
    absence: Absence | None
    taken_at: datetime
    driver_version: Reading[str]
    cards: tuple[CardReadings, ...] = ()
    host: HostReadings | None = None
    server: ServerReadings | None = None
    families: tuple[str, ...] = ()
    missed_polls: int = 0

    def __post_init__(self) -> None:
        if self.taken_at.utcoffset() is None:
            raise ValueError("A snapshot is taken at an aware instant.")
        if (self.absence is None) == (self.state == "absent" or self.missed_polls > 0):
            raise ValueError("A snapshot that is absent or was not renewed says why, and no other does.")

    @classmethod
    def absent(
        cls,
        source: str,
        label: str,
        kind: Kind,
        absence: Absence,
        now: Callable[[], datetime] = utc_now,
        families: tuple[str, ...] = (),
    ) -> "ProbeSnapshot":
        """A source that cannot be read, and why."""
        return cls(
            source=source,
            label=label,
            kind=kind,
            state="absent",
            absence=absence,
            taken_at=now(),
            driver_version=Reading.missing(absence),
            families=families,
        )

    @property
    def stale(self) -> bool:
        """Whether two polls or more have passed without a newer answer."""
        return self.missed_polls >= STALE_AFTER_POLLS

    def missed(self, absence: Absence, polls: int) -> "ProbeSnapshot":
        """The same readings and instant after `polls` failures in a row, with the reason of the last."""
        return replace(self, missed_polls=polls, absence=absence)

    def document(self) -> dict[str, object]:
        """The JSON-ready form; holds no address, no UUID and nothing about processes."""
        return {
            "source": self.source,
            "label": self.label,
            "kind": self.kind,
            "state": self.state,
            "absence": self.absence.document() if self.absence is not None else None,
            "driver_version": self.driver_version.document(),
            "cards": [card.document() for card in self.cards],
            "host": self.host.document() if self.host is not None else None,
            "server": self.server.document() if self.server is not None else None,
            "families": list(self.families),
            "taken_at": self.taken_at.isoformat(),
            "missed_polls": self.missed_polls,
            "stale": self.stale,
        }


class Probe(Protocol):
    """A source of readings: blocking, so to be called away from the event loop; the `Sampler` does that."""

    @property
    def name(self) -> str:
        """A short constant such as "nvidia": the `source` of its snapshots."""

    @property
    def label(self) -> str:
        """What a person calls the source: the `label` of its snapshots."""

    @property
    def kind(self) -> Kind:
        """What its snapshots are of."""

    def snapshot(self) -> ProbeSnapshot:
        """The readings now. Never raises: whatever goes wrong is an absence in the answer. May block for seconds."""

    def close(self) -> None:
        """Lets go of the driver. Never raises; may be called twice; a later `snapshot` opens it again."""
