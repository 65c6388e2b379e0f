"""The fitted constants as tables, and what they say of one deployment.

A law's value is the product of one entry of each of its axes: family of the accelerator, format, engine, kind of model.
An entry that is not there falls back: a family on the kind of its memory, that and an engine on `other`, and a factor
without even that on 1. What fell back is told, and gets the wider interval.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from app.calc.expected.reach import Efficiency, Format, Reach

OTHER = "other"
Table = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Law:
    """One constant: entries by axis."""

    axes: Mapping[str, Table]

    def value(self, keys: "Keys", format_: Format | None = None) -> float:
        """The product over the axes."""
        result = 1.0
        for axis, table in self.axes.items():
            result *= _entry(table, keys.of(axis, format_))
        return result


@dataclass(frozen=True, slots=True)
class Keys:
    """What a deployment is to the calibration. `stack` is `server`, or `llama.cpp` with kernels of its own."""

    stack: str
    family: str
    memory: str
    link: str
    engine: str
    model: str

    def of(self, axis: str, format_: Format | None) -> tuple[str, ...]:
        """The entries to try on an axis, most special first."""
        if axis == "format":
            return (format_ or Format.WIDE,)
        if axis == "family":
            return (self.family, self.memory, OTHER)
        if axis in ("memory", "engine"):
            return (getattr(self, axis), OTHER)
        if axis == "family_and_format":
            return (f"{self.family} {format_}",)
        return (str(getattr(self, axis)),)


@dataclass(frozen=True, slots=True)
class Interval:
    """Eight measurements of ten lie between `low` and `high` times the prediction."""

    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """All laws by stack, what was seen in the fit, and intervals by regime, for seen and for unseen families.

    Beyond `longest_request` tokens, or `largest_batch` sequences of a rank where their number was stated, nothing was
    measured: no interval is claimed.
    """

    version: str
    laws: Mapping[str, Mapping[str, Law]]
    families: frozenset[str]
    engines: frozenset[str]
    intervals: Mapping[str, Interval]
    intervals_unseen: Mapping[str, Interval]
    longest_request: int = 10**9
    largest_batch: int = 10**9

    def has_seen(self, keys: Keys) -> bool:
        """Whether both the accelerator's family and the engine were in the fit."""
        return f"{keys.stack} {keys.family}" in self.families and keys.engine in self.engines

    def efficiency(self, keys: Keys) -> Efficiency:
        """The constants of one deployment, every share at most 1."""
        return _efficiency(self, keys)


@lru_cache(maxsize=512)
def _efficiency(calibration: Calibration, keys: Keys) -> Efficiency:
    """Looked up once, not in every step of a sweep; a calibration is one object, compared by identity."""
    laws = calibration.laws[keys.stack]

    def of(name: str, format_: Format | None = None) -> float:
        return laws[name].value(keys, format_)

    slowdown, calls = of("software"), of("calls")

    def share(name: str, format_: Format | None = None) -> float:
        return min(1.0, of(name, format_)) / max(1.0, slowdown)

    def reach(operator: str, format_: Format | None = None) -> Reach:
        call_s = of(f"{operator}_call_s", format_) * calls * slowdown
        return Reach(share(f"{operator}_rate", format_), share(f"{operator}_bandwidth", format_), call_s)

    return Efficiency(
        matrices=MappingProxyType({f: reach("matrix", f) for f in Format}),
        experts=MappingProxyType({f: reach("experts", f) for f in Format}),
        attention=reach("attention"),
        state=reach("state"),
        light=reach("light"),
        attention_half_tokens=of("attention_half_tokens"),
        prefill_half_tokens=of("prefill_half_tokens"),
        link_share=share("link_share"),
        link_share_power=of("link_share_power"),
        link_latency_s=of("link_latency_s") * slowdown,
        link_latency_power=of("link_latency_power"),
        exchange_latency_s=of("exchange_latency_s") * slowdown,
        step_s=of("step_s") * slowdown,
        sequence_s=of("sequence_s") * slowdown,
        request_s=of("request_s"),
        wait_share=min(1.0, of("wait_share")),
        wait_power=min(1.0, of("wait_power")),
    )


def _entry(table: Table, tried: tuple[str, ...]) -> float:
    for key in tried:
        if key in table:
            return table[key]
    return 1.0
