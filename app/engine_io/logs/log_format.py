"""One engine's log: the runs in it, and the rules that make fields of their figures."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from app.catalog.catalog import Catalog
from app.engine_io.logs.findings import Findings, Settings
from app.engine_io.logs.patterns import Hit, LinePattern, Quantity, Ranks

_MOST_STARTS = 2000


@dataclass(frozen=True)
class Run:
    """The text of one start and its figures in order; `start` is where it begins in all that was pasted."""

    text: str
    hits: tuple[Hit, ...]
    ranks: Ranks
    start: int = 0
    first: frozenset[str] = frozenset()

    @cached_property
    def by_id(self) -> dict[str, tuple[Hit, ...]]:
        """Figures under their id: of each rank the last one (of `first` ids the first), of no rank all that differ."""
        latest: dict[tuple[str, str | None, float | None], Hit] = {}
        for hit in self.hits:
            key = (hit.id, hit.rank, hit.value if hit.rank is None else None)
            if hit.id not in self.first or key not in latest:
                latest[key] = hit
        grouped: dict[str, list[Hit]] = {}
        for hit in latest.values():
            grouped.setdefault(hit.id, []).append(hit)
        return {id_: tuple(hits) for id_, hits in grouped.items()}

    def all(self, *ids: str) -> tuple[Hit, ...]:
        return next((self.by_id[id_] for id_ in ids if id_ in self.by_id), ())

    def last(self, *ids: str) -> float | None:
        found = self.all(*ids)
        return max(found, key=lambda hit: hit.offset).value if found else None

    def smallest(self, *ids: str) -> Hit | None:
        return min(self.all(*ids), key=lambda hit: hit.value, default=None)

    def of_rank(self, rank: str | None, *ids: str) -> float | None:
        """That rank's figure, else the largest of any rank."""
        found = self.all(*ids)
        own = [hit.value for hit in found if hit.rank == rank and rank is not None]
        return max(own or [hit.value for hit in found], default=None)


@dataclass(frozen=True, slots=True)
class Marks:
    """Literals with which a run begins: `starts` always, `restarts` only once `ready` figures have been printed.

    A run that has printed one of `complete` is worth reading. Of the figures `first` a rank's first one counts, for
    what comes after it is a second model's.
    """

    starts: tuple[str, ...]
    restarts: tuple[str, ...] = ()
    complete: tuple[str, ...] = ()
    ready: tuple[str, ...] = ()
    first: frozenset[str] = frozenset()


def split_runs(text: str, hits: Sequence[Hit], ranks: Ranks, marks: Marks) -> list[Run]:
    """The runs of a text in order; those that print no figure are left out, if any prints one."""
    borders = [0, *_borders(text, hits, ranks, marks), len(text)]
    offsets = [hit.offset for hit in hits]
    runs = []
    for start, end in pairwise(borders):
        own = tuple(hits[bisect_left(offsets, start) : bisect_left(offsets, end)])
        runs.append(Run(text[start:end], own, ranks, start, marks.first))
    return [run for run in runs if run.hits] or runs[-1:]


def _borders(text: str, hits: Sequence[Hit], ranks: Ranks, marks: Marks) -> list[int]:
    found = sorted((at, mark) for mark in (*marks.starts, *marks.restarts) for at in _places(text, mark))
    borders: list[int] = []
    begun: set[tuple[str, str | None]] = set()
    since = 0
    for at, mark in found:
        start = text.rfind("\n", 0, at) + 1
        rank = ranks.at(start, at)
        new = {hit.id for hit in _between(hits, since, at)}
        again = (mark, rank) in begun
        other_rank = rank is not None and not again and any(seen == mark for seen, _ in begun)
        if mark in marks.starts:
            begins = bool(new) and (again or (not other_rank and not new.isdisjoint(marks.complete)))
        else:
            begins = again and not new.isdisjoint(marks.ready)
        if begins:
            borders.append(start)
            begun, since = set(), at
        begun.add((mark, rank))
    return borders


def _between(hits: Sequence[Hit], since: int, until: int) -> Iterable[Hit]:
    first = bisect_left(hits, since, key=lambda hit: hit.offset)
    return hits[first : bisect_left(hits, until, key=lambda hit: hit.offset)]


def _places(text: str, mark: str) -> list[int]:
    places: list[int] = []
    at = text.find(mark)
    while at >= 0 and len(places) < _MOST_STARTS:
        places.append(at)
        at = text.find(mark, at + len(mark))
    return places


@dataclass(frozen=True, slots=True)
class Heard:
    """One run of an engine with all that is needed to make a scenario of it; `findings` is what `tell` fills."""

    run: Run
    settings: Settings
    findings: Findings
    catalog: Catalog
    release: str | None


@dataclass(frozen=True, slots=True)
class ReleaseMark:
    """Where an engine prints its release: `behind` is matched after `literal`, and `prefix` put before its group.

    What a build adds to a release behind a plus is not read: it can be a name. No engine's major release has two
    digits, and an address has.
    """

    literal: str
    behind: re.Pattern[str] = re.compile(r"v?([0-9](?:\.[0-9]{1,3}){1,3}(?:\.?(?:a|b|rc|post|dev)[0-9]{1,8}){0,3})")
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class LogFormat:
    """An engine's log.

    `keys` are the figures by which a text is known to be this engine's; `lists` begin its lists of arguments;
    `does_not_apply` are fields of a scenario that it has no equal of; `smallest_decides` says that all workers hold as
    many tokens as the one with the smallest pool.
    """

    id: str
    name: str
    quantities: Mapping[str, Quantity]
    patterns: tuple[LinePattern, ...]
    keys: frozenset[str]
    releases: tuple[ReleaseMark, ...]
    lists: tuple[str, ...]
    marks: Marks
    tell: Callable[[Heard], None]
    does_not_apply: tuple[str, ...] = ()
    smallest_decides: bool = True


def find_release(text: str, marks: tuple[ReleaseMark, ...]) -> str | None:
    """The first release that the text states."""
    for mark in marks:
        at = text.find(mark.literal)
        while at >= 0:
            if matched := mark.behind.match(text, at + len(mark.literal)):
                return mark.prefix + matched[1]
            at = text.find(mark.literal, at + len(mark.literal))
    return None
