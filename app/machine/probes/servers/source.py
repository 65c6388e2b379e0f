"""Where a server's metrics come from: what may be fetched, and a scrape of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from app.machine.probes.reading import Absence
from app.machine.probes.servers import json_answers
from app.machine.probes.servers.adapter import Adapter
from app.machine.probes.servers.adapters import adapter_of, recognise, wanted_names
from app.machine.probes.servers.exposition import MOST_BODY_BYTES, Exposition, read_exposition

Path = Literal["", "/metrics", "/prometheus/metrics", "/slots", "/props"]
"""What may be asked for: the configured address itself, or one of four paths on the same server.

The query of the configured address goes along with every path: llama.cpp's router wants its `?model=` there too.
"""

CONFIGURED: Final[Path] = ""


@dataclass(frozen=True, slots=True)
class FetchedText:
    """An answer as it came: any status, its `content_type` or an empty text, and a body that is already bounded."""

    status: int
    content_type: str
    body: bytes


class FetchFailed(Exception):  # noqa: N818 - it says what happened to a fetch, as the probe reads it
    """No answer; `absence` says why (blocked, unreachable, a timeout, too large, not metrics)."""

    def __init__(self, absence: Absence) -> None:
        self.absence = absence
        super().__init__(absence.message)


Fetch = Callable[[Path], FetchedText]
"""Fetches one path within a total time of its own, or raises `FetchFailed`. Called from several threads in turn."""


PATIENCE_S = 1.0
"""Once a snapshot has taken so long, no path is tried that it can do without."""

PROPERTIES_KEPT_S = 30.0
OK = 200
_TEXT_BESIDE_STATISTICS: Path = "/prometheus/metrics"
_SLOTS: Path = "/slots"
_PATHS: tuple[Path, ...] = (CONFIGURED, "/metrics", _TEXT_BESIDE_STATISTICS, _SLOTS)
_REFUSALS = frozenset({401, 403})
_OWN_ERRORS = 500
_TENSORRT_LLM, _LLAMA_CPP = "tensorrt-llm", "llama.cpp"
_CACHE_GAUGE = "llamacpp:kv_cache_usage_ratio"

# After these the metrics may be on another path; after others nothing on this server will be had.
_ELSEWHERE = frozenset({Absence.NOT_METRICS, Absence.UNRECOGNISED, Absence.FAILING})


@dataclass(frozen=True, slots=True)
class Scrape:
    """What a server showed at `taken_at_s`, and of which kind it is.

    `statistics` marks TensorRT-LLM's list of iterations, which is empty while nothing runs.
    """

    adapter: Adapter
    exposition: Exposition
    taken_at_s: float
    statistics: bool = False


@dataclass(frozen=True, slots=True)
class Nothing:
    """Why there is no scrape, and what an unknown server's metrics are called."""

    absence: Absence
    families: tuple[str, ...] = ()


class Source:
    """Finds and fetches the metrics of one server. `clock` is in seconds and monotonic."""

    def __init__(self, fetch: Fetch, clock: Callable[[], float]) -> None:
        self._fetch, self._clock = fetch, clock
        self._route: Path | None = None
        self._kind = ""
        self._properties: Exposition | None = None
        self._properties_at_s = float("-inf")

    def scrape(self) -> Scrape | Nothing:
        """What the server shows now, where it was found the last time or else wherever it may be."""
        started_at_s = self._clock()
        if self._route is not None:
            found = self._look(self._route)
            if isinstance(found, Scrape) and found.adapter.kind == self._kind:
                return self._completed(found, started_at_s)
            if isinstance(found, Nothing) and found.absence not in _ELSEWHERE:
                return found
            self.forget()  # Another server has taken its place, or none.
        found = self._search(started_at_s)
        if isinstance(found, Nothing):
            return found
        self._kind = found.adapter.kind
        return self._completed(found, started_at_s)

    def forget(self) -> None:
        """The next scrape looks for the metrics anew."""
        self._route, self._kind = None, ""
        self._properties, self._properties_at_s = None, float("-inf")

    def _search(self, started_at_s: float) -> Scrape | Nothing:
        """Tries the configured address, then the paths that servers use; statistics in JSON are the second choice."""
        second: tuple[Path, Scrape] | None = None
        reason = Nothing(Absence.NOT_METRICS)
        for path in _PATHS:
            if second is not None and path != _TEXT_BESIDE_STATISTICS:
                continue
            if path != CONFIGURED and self._clock() - started_at_s > PATIENCE_S:
                break
            found = self._look(path)
            if isinstance(found, Scrape):
                if not found.statistics:
                    self._route = path
                    return found
                second = path, found
                continue
            # What a server makes of paths that it does not know says nothing of the one that was configured.
            if reason.absence is Absence.NOT_METRICS and (path == CONFIGURED or found.absence is not Absence.FAILING):
                reason = found
            if found.absence not in _ELSEWHERE | {Absence.TOO_LARGE}:
                break
        if second is None:
            return reason
        self._route, scrape = second
        return scrape

    def _look(self, path: Path) -> Scrape | Nothing:
        """What one path shows, whatever form it has."""
        body = self._ask(path)
        if isinstance(body, Absence):
            return Nothing(body)
        taken_at_s = self._clock()
        if body.lstrip()[:1] in (b"[", b"{"):
            return _of_json(path, body, taken_at_s)
        exposition = read_exposition(body, wanted_names())
        if isinstance(exposition, Absence):
            return Nothing(exposition)
        if (adapter := recognise(exposition)) is None:
            return Nothing(Absence.UNRECOGNISED, exposition.families)
        return Scrape(adapter, exposition, taken_at_s)

    def _completed(self, found: Scrape, started_at_s: float) -> Scrape:
        """With what the server tells elsewhere: llama.cpp the use of its slots, its model and its build."""
        if found.adapter.kind != _LLAMA_CPP:
            return found
        exposition = found.exposition
        if not {_CACHE_GAUGE, "/slots:n_ctx"} & exposition.names:
            exposition = self._with(exposition, json_answers.slots, _SLOTS, started_at_s)
        if self._clock() - self._properties_at_s > PROPERTIES_KEPT_S:
            self._properties_at_s = self._clock()
            self._properties = self._with(Exposition({}), json_answers.props, "/props", started_at_s)
        if self._properties is not None:
            exposition = exposition.joined(self._properties)
        return Scrape(found.adapter, exposition, found.taken_at_s)

    def _with(
        self, exposition: Exposition, read: Callable[[object], Exposition | None], path: Path, started_at_s: float
    ) -> Exposition:
        if self._clock() - started_at_s > PATIENCE_S:
            return exposition
        body = self._ask(path)
        more = read(json_answers.read_json(body)) if isinstance(body, bytes) else None
        return exposition.joined(more) if more is not None else exposition

    def _ask(self, path: Path) -> bytes | Absence:
        """The body that a path answers with, or why there is none."""
        try:
            fetched = self._fetch(path)
        except FetchFailed as failure:
            return failure.absence
        if fetched.status in _REFUSALS:
            return Absence.REFUSED
        if fetched.status != OK:
            return Absence.FAILING if fetched.status >= _OWN_ERRORS else Absence.NOT_METRICS
        return fetched.body if len(fetched.body) <= MOST_BODY_BYTES else Absence.TOO_LARGE


def _of_json(path: Path, body: bytes, taken_at_s: float) -> Scrape | Nothing:
    value = json_answers.read_json(body)
    if (slots := json_answers.slots(value)) is not None:
        return Scrape(adapter_of(_LLAMA_CPP), slots, taken_at_s)
    if path != _SLOTS and (statistics := json_answers.iteration_statistics(value)) is not None:
        return Scrape(adapter_of(_TENSORRT_LLM), statistics, taken_at_s, statistics=True)
    return Nothing(Absence.NOT_METRICS)
