"""What an AMD card's counters say between two samples: the traffic on its links, and what held its clocks down."""

from collections.abc import Callable, Mapping

from app.probes.amd_answers import figure
from app.probes.card import BYTES, BYTES_PER_SECOND
from app.probes.counter_rates import LONGEST_WINDOW_S, SHORTEST_WINDOW_S, CounterMeter
from app.probes.plausible import whole
from app.probes.reading import Absence, Reading

LINK_CEILING_BYTES_PER_S = 2e13
COUNTER_CEILING = 2**63
LINK_LIMIT = 64

# The counters are said to be in KB. Whether that is 1,000 or 1,024 bytes is not: the smaller may be 2.4 % too low.
_BYTES_PER_KB = 1000

# Counts of firmware ticks, in the kernel's metrics from MI300 on.
_TICKS = "accumulation_counter"
_RESIDENCY_OF_REASON = {
    "power cap": "ppt_residency_acc",
    "processor hot": "prochot_residency_acc",
    "socket thermal limit": "socket_thm_residency_acc",
    "regulator thermal limit": "vr_thm_residency_acc",
    "memory thermal limit": "hbm_thm_residency_acc",
}
_LEAST_SHARE = 0.01

# Older cards have bit masks, of which the binding says only whether any bit is set.
_FLAGS = ("indep_throttle_status", "throttle_status")

Reasons = Reading[tuple[str, ...]]


class CardMeters:
    """The meters of one card; `clock` is in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._sent, self._received = LinkMeter(clock, "write"), LinkMeter(clock, "read")
        self._throttle = ThrottleMeter(clock)

    def link_rates(self, answer: object) -> dict[str, Reading[float]]:
        """Bytes per second over all Infinity Fabric (xGMI) links by field, from the answer about links.

        The fields are those of NVLink: links between cards are links between cards.
        """
        return {
            "nvlink_sent_bytes_per_s": self._sent.rate(answer),
            "nvlink_received_bytes_per_s": self._received.rate(answer),
        }

    def throttle_reasons(self, metrics: object) -> Reasons:
        """What held the clocks down since the last sample, from the answer with the metrics."""
        return self._throttle.reasons(metrics)


class LinkMeter:
    """The rate of one direction's counters ("read" or "write"), over all links of a card."""

    def __init__(self, clock: Callable[[], float], direction: str) -> None:
        self._meter = CounterMeter(clock, LINK_CEILING_BYTES_PER_S)
        self._direction = direction
        self._counting: list[int] = []

    def rate(self, answer: object) -> Reading[float]:
        """Bytes per second since the answer before. Links that have no counter are passed over."""
        links = figure(answer, "links")
        if not isinstance(links, list):
            absence = links if isinstance(links, Absence) else Absence.IMPLAUSIBLE
            return self._meter.rate(Reading.missing(absence, BYTES))
        counts = {
            number: count
            for number, link in enumerate(links[:LINK_LIMIT])
            if (count := _count(figure(link, self._direction, wide=True))) is not None
        }
        if not counts:
            return self._meter.rate(Reading.missing(Absence.NOT_SUPPORTED, BYTES))
        if list(counts) != self._counting:  # The sum of other links is no later state of the same counter.
            self._counting = list(counts)
            self._meter.rate(Reading.missing(Absence.NEEDS_TWO_SAMPLES, BYTES))
        # A card without such links may answer zero for each of them.
        total = whole(sum(counts.values()) * _BYTES_PER_KB, BYTES, ceiling=LINK_LIMIT * COUNTER_CEILING * _BYTES_PER_KB)
        rate = self._meter.rate(total)
        return Reading(rate.value, BYTES_PER_SECOND, rate.absence, "xGMI link counters")


class ThrottleMeter:
    """What held a card's clocks down for 1 % of the time or more between each sample and the one before.

    amdsmi has a call for this, which takes both samples itself and sleeps for 0.1 s in between, for each card.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._before: tuple[Mapping[str, int], float] | None = None
        self._reasons: Reasons = Reading.missing(Absence.NEEDS_TWO_SAMPLES)

    def reasons(self, metrics: object) -> Reasons:
        """Names of what held the clocks down, none as an empty tuple; a card without such counters says at most
        whether anything does now, as `unspecified`.
        """
        counts = _counts(metrics)
        if counts is None:
            self._before = None
            return _by_flag(metrics)
        now = self._clock()
        if self._before is not None and now - self._before[1] < SHORTEST_WINDOW_S:
            return self._reasons
        before, self._before = self._before, (counts, now)
        in_time = before is not None and now - before[1] <= LONGEST_WINDOW_S
        self._reasons = (
            _between(before[0], counts) if before and in_time else Reading.missing(Absence.NEEDS_TWO_SAMPLES)
        )
        return self._reasons


def _counts(metrics: object) -> dict[str, int] | None:
    """The ticks and the residencies that this card has, or None where it has not both."""
    counts = {}
    for key in (_TICKS, *_RESIDENCY_OF_REASON.values()):
        count = _count(figure(metrics, key, wide=True))
        if count is not None:
            counts[key] = count
    return counts if _TICKS in counts and len(counts) > 1 else None


def _between(before: Mapping[str, int], after: Mapping[str, int]) -> Reasons:
    if any(after[key] < before.get(key, 0) for key in after):
        return Reading.missing(Absence.COUNTER_RESET)
    ticks = after[_TICKS] - before[_TICKS]
    if ticks == 0:
        return Reading.missing(Absence.NOTHING_TO_MEASURE)
    return Reading(
        tuple(
            reason
            for reason, key in _RESIDENCY_OF_REASON.items()
            if key in before and key in after and (after[key] - before[key]) / ticks >= _LEAST_SHARE
        ),
        read_from="residency counters",
    )


def _by_flag(metrics: object) -> Reasons:
    for key in _FLAGS:
        flag = figure(metrics, key)
        if isinstance(flag, bool):
            return Reading(("unspecified",) if flag else (), read_from=key)
    return Reading.missing(metrics if isinstance(metrics, Absence) else Absence.NOT_SUPPORTED)


def _count(raw: object) -> int | None:
    return whole(raw, "", ceiling=COUNTER_CEILING, zero_is_absent=False).value
