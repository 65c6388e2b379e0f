"""Servers that answer what a file says they once did, and what a probe makes of it.

A file holds two scrapes: `value | value`, or one value for both. None was recorded; all were made from published names.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.machine.probes.reading import Absence, Reading, units_of
from app.machine.probes.servers import source
from app.machine.probes.servers.probe import ServerProbe
from app.machine.probes.servers.readings import ServerReadings
from app.machine.probes.servers.source import FetchedText, FetchFailed
from app.machine.probes.snapshot import ProbeSnapshot

FOLDER = Path(__file__).resolve().parents[3] / "data" / "expositions"
STEP_S = 10.0
NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)

Expected = Mapping[str, tuple[float | str, str] | Absence]
"""A value and where it was read, or why there is none, by reading."""


def two_scrapes(file: str) -> tuple[bytes, bytes]:
    """The texts of a file's first and second scrape."""
    first: list[str] = []
    second: list[str] = []
    for line in (FOLDER / file).read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" | ")
        first.append(before)
        second.append(f"{before.rpartition(' ')[0]} {after}" if after and not line.startswith("#") else before)
    return "".join(f"{line}\n" for line in first).encode(), "".join(f"{line}\n" for line in second).encode()


def json_scrapes(file: str) -> list[bytes]:
    """The bodies of a JSON file that is a list of scrapes."""
    return [json.dumps(scrape).encode() for scrape in json.loads((FOLDER / file).read_text(encoding="utf-8"))]


@dataclass
class FakeServer:
    """Answers by path: with a body, a whole answer, or the reason of a failure. Counts what it is asked."""

    answers: dict[str, bytes | FetchedText | Absence] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def fetch(self, path: source.Path) -> FetchedText:
        self.asked.append(path)
        answer = self.answers.get(path, FetchedText(404, "text/plain", b""))
        if isinstance(answer, Absence):
            raise FetchFailed(answer)
        return FetchedText(200, "text/plain", answer) if isinstance(answer, bytes) else answer


@dataclass
class FakeClock:
    """Seconds that pass when told to."""

    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


def probe_of(server: FakeServer, clock: FakeClock) -> ServerProbe:
    return ServerProbe("server-1", "The server", server.fetch, clock=clock, now=lambda: NOW)


def seen(snapshot: ProbeSnapshot) -> ServerReadings:
    """The readings of a snapshot that must have gone well."""
    assert (snapshot.state, snapshot.absence) == ("ok", None)
    assert snapshot.server is not None
    json.dumps(snapshot.document(), allow_nan=False)
    return snapshot.server


def after_two_scrapes(file: str, **also: bytes) -> ProbeSnapshot:
    """The snapshot at the second of a file's scrapes; `also` are bodies of further paths, by their last word."""
    first, second = two_scrapes(file)
    clock, server = FakeClock(), FakeServer({f"/{path}": body for path, body in also.items()})
    probe = probe_of(server, clock)
    server.answers[""] = first
    seen(probe.snapshot())
    clock.seconds += STEP_S
    server.answers[""] = second
    return probe.snapshot()


def check(readings: ServerReadings, expected: Expected) -> None:
    """Every reading is as expected, and those not spoken of are not reported."""
    for name in units_of(ServerReadings):
        reading: Reading[Any] = getattr(readings, name)
        wanted = expected.get(name, Absence.NOT_REPORTED)
        if isinstance(wanted, Absence):
            assert (name, reading.absence) == (name, wanted)
        else:
            value = wanted[0] if isinstance(wanted[0], str) else pytest.approx(wanted[0], rel=1e-9)
            assert (name, reading.value, reading.read_from) == (name, value, wanted[1])
