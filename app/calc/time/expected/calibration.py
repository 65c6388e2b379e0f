"""The fitted constants as tables, and what they say of one deployment.

A law's value is the product of one entry of each of its axes: family of the accelerator, format, engine, kind of model.
An entry that is not there falls back: a family on the kind of its memory, that and an engine on `other`, and a factor
without even that on 1. What fell back is told, and gets the wider interval.

A user's own calibration: how many times slower a benchmark of one's own ran than is expected without it.

The factor is that of a machine whose software is slower: each share of a peak is so many times smaller, each call,
latency and step of the host so many times longer. No share exceeds 1, so a factor below 1 brings times no nearer to
their ceilings than kernels at the vendor's peak would.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from app.calc.quantity import significant
from app.calc.time.expected.reached import Efficiency, Format, Reach

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


TOO_FEW = "too few points of your own"
_SIDES = ("decode", "prefill")
_OF_PROMPTS = frozenset({"ttft", "prefill"})
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class OwnFactor:
    """`factor` times slower, from so many `points` of a benchmark.

    Eight measurements of ten lie between `low` and `high` times what is then expected; None where too few were made.
    """

    factor: float
    points: int
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> Interval | None:
        """Around the calibrated time; None where none is told."""
        return None if self.low is None or self.high is None else Interval(self.low, self.high, self.points)

    @property
    def counted(self) -> str:
        return f"{self.points:,} {'point' if self.points == 1 else 'points'}"

    @property
    def words(self) -> str:
        return f"× {significant(self.factor, _DIGITS)} ({self.counted})"


@dataclass(frozen=True, slots=True)
class OwnCalibration:
    """The factors of decode and of prefill times by the user's `name` for them; None leaves a side as it was fitted."""

    name: str
    decode: OwnFactor | None = None
    prefill: OwnFactor | None = None

    @property
    def sides(self) -> dict[str, OwnFactor]:
        """The sides that are calibrated, by what they are called."""
        both = zip(_SIDES, (self.decode, self.prefill), strict=True)
        return {side: factor for side, factor in both if factor is not None}

    @property
    def is_whole(self) -> bool:
        """Whether both sides are calibrated."""
        return len(self.sides) == len(_SIDES)

    @property
    def words(self) -> str:
        told = ", ".join(f"{side} {factor.words}" for side, factor in self.sides.items())
        return f"«{self.name}»: {told}"

    def of_metric(self, metric: str) -> OwnFactor | None:
        """The factor of what a metric's time is made of: prompts, or decode steps."""
        return self.prefill if metric in _OF_PROMPTS else self.decode

    def named_for(self, *sides: str) -> str | None:
        """Name and points, as the source of a figure of these sides; None where none of them is calibrated."""
        found = {side: factor for side, factor in self.sides.items() if side in sides}
        if not found:
            return None
        if len(found) == 1:
            return f"your calibration «{self.name}», {next(iter(found.values())).counted}"
        counts = ", ".join(f"{side} {factor.counted}" for side, factor in found.items())
        return f"your calibration «{self.name}», {counts}"

    @property
    def notice(self) -> str:
        """What a reader must know where expected values are calibrated by it."""
        message = (
            f"The expected times are calibrated by {self.words}. That holds for what was measured: another model, "
            "accelerator, engine or load may be off by another factor."
        )
        if any(factor.factor < 1 for factor in self.sides.values()):
            message += " A kernel that is near the vendor’s peak gets no faster than that."
        return message

    def withheld(self, fitted: str | None) -> str | None:
        """Why an interval is not claimed, where one is not.

        Args:
            fitted: why none comes from published measurements; None where one does.
        """
        reasons = {"decode times": _reason(self.decode, fitted), "prompts": _reason(self.prefill, fitted)}
        if len(set(reasons.values())) == 1:
            return reasons["prompts"]
        return "; ".join(f"of {what}, {reason}" for what, reason in reasons.items() if reason is not None)


def _reason(factor: OwnFactor | None, fitted: str | None) -> str | None:
    if factor is None:
        return fitted
    return TOO_FEW if factor.interval is None else None


def calibrated(efficiency: Efficiency, own: OwnCalibration) -> Efficiency:
    """What a deployment reaches by a user's calibration. The host's part of a request belongs to its prompt."""
    steps = efficiency if own.decode is None else efficiency.slower(own.decode.factor)
    prompts = efficiency if own.prefill is None else efficiency.slower(own.prefill.factor)
    return replace(steps, request_s=prompts.request_s, of_prefill=prompts)
