"""The probe of one inference server, by whatever it shows of its metrics."""

import threading
import time
from collections.abc import Callable
from datetime import datetime

from app.machine.probes.reading import Absence
from app.machine.probes.servers.adapter import Adapter
from app.machine.probes.servers.adapters import known_adapters
from app.machine.probes.servers.measure import measure, version
from app.machine.probes.servers.readings import ServerReadings
from app.machine.probes.servers.source import Fetch, Scrape, Source
from app.machine.probes.servers.tally import tally_of
from app.machine.probes.servers.window import Window
from app.machine.probes.snapshot import Kind, ProbeSnapshot, utc_now

INTERVAL_S = 2.0


class ServerProbe:
    """Reads one server, of whichever kind it turns out to be. Safe to call from several threads.

    The server is asked once in `interval_s` at most; in between the last answer is given again. `fetch` brings what it
    shows, each time within a time of its own, and never more than a handful of times for one snapshot. Rates and
    quantiles come with the second answer. `clock` is in seconds and monotonic, `now` the instant of a snapshot.

    Raises:
        AdapterError: a data file of the adapters is not to be trusted.
    """

    kind: Kind = "server"

    def __init__(
        self,
        name: str,
        label: str,
        fetch: Fetch,
        *,
        interval_s: float = INTERVAL_S,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        known_adapters()  # A slip in them is found now, and not by the first viewer.
        self._name, self._label = name, label
        self._interval_s, self._clock, self._now = interval_s, clock, now
        self._source = Source(fetch, clock)
        self._window = Window()
        self._adapter: Adapter | None = None
        self._cached: ProbeSnapshot | None = None
        self._asked_at = 0.0
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The `source` of its snapshots."""
        return self._name

    @property
    def label(self) -> str:
        """What the operator calls the server."""
        return self._label

    def snapshot(self) -> ProbeSnapshot:
        """The readings now, or the reason why there are none. Blocks as long as the fetches do; never raises."""
        with self._lock:
            asked_at = self._clock()
            if self._cached is None or not 0 <= asked_at - self._asked_at < self._interval_s:
                self._asked_at = asked_at
                try:
                    self._cached = self._snapshot()
                except Exception:  # The last wall: a fault of ours must not take the page down either.
                    self._cached = self._absent(Absence.UNKNOWN_ERROR)
            return self._cached

    def close(self) -> None:
        """Forgets what it has read; waits for a snapshot in progress."""
        with self._lock:
            self._forget()
            self._source.forget()
            self._cached = None

    def _snapshot(self) -> ProbeSnapshot:
        scrape = self._source.scrape()
        if not isinstance(scrape, Scrape):
            return self._absent(scrape.absence, scrape.families)
        if self._adapter is None or scrape.adapter.kind != self._adapter.kind:
            self._forget()  # Another server has taken its place.
            self._adapter = scrape.adapter
        if scrape.statistics and not scrape.exposition.series:
            return self._present(ServerReadings.of(scrape.adapter.kind, Absence.NOTHING_TO_MEASURE), scrape)
        tally = tally_of(scrape.exposition, scrape.adapter)
        self._window.add(tally, scrape.taken_at_s)
        return self._present(measure(scrape.adapter, scrape.exposition, tally, self._window), scrape)

    def _forget(self) -> None:
        self._window, self._adapter = Window(), None

    def _absent(self, absence: Absence, families: tuple[str, ...] = ()) -> ProbeSnapshot:
        return ProbeSnapshot.absent(self._name, self._label, self.kind, absence, self._now, families)

    def _present(self, server: ServerReadings, scrape: Scrape) -> ProbeSnapshot:
        return ProbeSnapshot(
            source=self._name,
            label=self._label,
            kind=self.kind,
            state="ok",
            absence=None,
            taken_at=self._now(),
            driver_version=version(scrape.exposition, scrape.adapter),
            server=server,
        )
