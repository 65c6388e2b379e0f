"""The text of a metrics endpoint, read within bounds: only the lines that somebody wants are parsed."""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from prometheus_client.parser import text_string_to_metric_families

from app.machine.probes.reading import Absence

MOST_BODY_BYTES = 2 * 1024 * 1024
MOST_SAMPLES = 20_000
MOST_KEPT_CHARACTERS = 1024 * 1024
"""Of lines that are parsed; the parser takes about a second for so much, and a large honest server has a fifth."""

MOST_LINE_CHARACTERS = 16_384
MOST_LABELS = 128
"""In one line. A longer or fuller line is passed over as if it were not there."""

MOST_VALUE = 1e30
"""Larger than any honest count (a year of FLOP is 10²³), small enough that nothing overflows when it is added up."""

FAMILIES_SHOWN = 40
MOST_FAMILY_CHARACTERS = 100
_MOST_NAMES = 4096

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_START = re.compile(rf"^[ \t]*(?:#[ \t]+TYPE[ \t]+({_NAME})[ \t]|({_NAME})(?=[ \t{{]))", re.MULTILINE)
_REST = re.compile(  # labels, value, time stamp, exemplar
    r"(?:\{[^\n]*\})?[ \t]*[+-]?(?:[0-9.][0-9.e+-]*|nan|inf)(?:[ \t]+-?[0-9.]+)?[ \t\r]*(?:#[^\n]*)?$", re.IGNORECASE
)
_SUFFIXES = ("_bucket", "_sum", "_count", "_total", "_created", "_info")


@dataclass(frozen=True, slots=True)
class Series:
    """One sample: its labels and its value, which is no larger than `MOST_VALUE`."""

    labels: Mapping[str, str]
    value: float

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """The labels in a form that tells this series from others of its name."""
        return tuple(sorted(self.labels.items()))


@dataclass(frozen=True, slots=True)
class Exposition:
    """What one scrape says.

    `series` has the wanted samples by name. `names` are all names met, wanted or not (some thousands at most), and
    `families` the first `FAMILIES_SHOWN` of them without the endings of their kinds. `unusable` are wanted names of
    which a value was no number, or larger than any.
    """

    series: Mapping[str, tuple[Series, ...]]
    names: frozenset[str] = frozenset()
    families: tuple[str, ...] = ()
    unusable: frozenset[str] = frozenset()

    def joined(self, other: "Exposition") -> "Exposition":
        """Both together; of a name that both have, the series of `self`."""
        return Exposition(
            MappingProxyType({**other.series, **self.series}),
            self.names | other.names,
            self.families + other.families,
            self.unusable | other.unusable,
        )


def of_values(values: Mapping[str, tuple[Series, ...]]) -> Exposition:
    """An exposition of values that came in another form than the text, under made-up names."""
    return Exposition(MappingProxyType(dict(values)), frozenset(values))


@dataclass(slots=True)
class _Kept:
    """What is gathered on the way through a text."""

    series: dict[str, list[Series]] = field(default_factory=dict)
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = field(default_factory=set)
    unusable: set[str] = field(default_factory=set)
    lines: int = 0
    characters: int = 0

    def add(self, line: str) -> None:
        self.lines += 1
        self.characters += len(line)
        if (sample := _parsed(line)) is None:
            return
        name, series = sample
        if not -MOST_VALUE <= series.value <= MOST_VALUE:  # So is NaN, which compares with nothing.
            self.unusable.add(name)
        elif (name, series.key) not in self.seen:  # Of twins the first counts: a sum must not have both.
            self.seen.add((name, series.key))
            self.series.setdefault(name, []).append(series)

    @property
    def too_large(self) -> bool:
        return self.lines > MOST_SAMPLES or self.characters > MOST_KEPT_CHARACTERS


def read_exposition(body: bytes, wanted: Collection[str]) -> Exposition | Absence:
    """The samples of `wanted` names in a Prometheus or OpenMetrics text; types and help are not needed for them.

    `too_large` for a body or a number of wanted samples beyond the limits; `not_metrics` where no line is a sample.
    What follows the last line feed is not read: a number cut short is worse than none. A line that makes no sense is
    passed over, so are NaN, the infinities and what is as good as infinite.
    """
    if len(body) > MOST_BODY_BYTES:
        return Absence.TOO_LARGE
    text = body.decode("utf-8", errors="replace")
    kept, names, declared = _Kept(), dict[str, None](), set[str]()
    for name, line in _samples(text):
        if len(names) < _MOST_NAMES or name in wanted:
            names[name] = None
        if line is None:
            declared.add(name)
        elif name in wanted:
            kept.add(line)
            if kept.too_large:
                return Absence.TOO_LARGE
    if not names:
        return Absence.NOT_METRICS
    return Exposition(
        MappingProxyType({name: tuple(found) for name, found in kept.series.items()}),
        frozenset(names),
        _families(names, declared),
        frozenset(kept.unusable),
    )


def _samples(text: str) -> Iterator[tuple[str, str | None]]:
    """The name and the line of every sample, and the name and None of every declared type, in the order of the text."""
    for match in _START.finditer(text):
        declared, name = match.groups()
        if declared is not None:
            yield declared, None
            continue
        end = text.find("\n", match.end())
        start = match.start()
        if end < 0 or end - start > MOST_LINE_CHARACTERS or not _REST.match(text, match.end(), end):
            continue
        yield name, text[start:end].strip()


def _parsed(line: str) -> tuple[str, Series] | None:
    if line.count("=") > MOST_LABELS:
        return None
    try:
        # One line at a time: the parser gives up at the first that it does not like.
        sample = next(iter(text_string_to_metric_families(line))).samples[0]
    except (ValueError, IndexError, StopIteration):
        return None
    try:
        value = float(sample.value)
    except OverflowError:  # A whole number of four hundred digits.
        value = math.inf
    return sample.name, Series(MappingProxyType(dict(sample.labels)), value)


def _families(names: Collection[str], declared: Collection[str]) -> tuple[str, ...]:
    """The first names without the endings of counters and histograms; all are plain ASCII by their pattern."""
    families: dict[str, None] = {}
    for name in names:
        families[_family(name, declared)[:MOST_FAMILY_CHARACTERS]] = None
        if len(families) == FAMILIES_SHOWN:
            break
    return tuple(families)


def _family(name: str, declared: Collection[str]) -> str:
    if name in declared:
        return name
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and name.removesuffix(suffix) in declared:
            return name.removesuffix(suffix)
    return name
