"""The steps of a plan on one card: what a library must offer, how a pass is timed, and what is measured in turn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from app.calc.dtypes import Dtype
from app.calc.quantity import GIB
from app.machine.peaks.outcome import (
    Fault,
    MeasureError,
    Outcome,
    ProductRate,
    Progress,
    Skipped,
    SkipReason,
    Stream,
    StreamRate,
    Timing,
    timing_of,
)
from app.machine.peaks.plan import ELEMENT_BYTES, Plan, product_bytes, room_bytes, vector_elements

Work = Callable[[], object]
"""One pass, queued on the card; what it works on lives as long as it does."""


class NoAcceleratorError(Exception):
    """The library is there, and no accelerator that it can use."""


class NoSuchCardError(Exception):
    """The library sees fewer cards: `count` of them."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(f"{count} cards")


class NotOfferedError(Exception):
    """The library, or the card, does not do arithmetic in this number format."""


class OutOfCardMemoryError(Exception):
    """The card has not the memory, or not within the limit."""


@dataclass(frozen=True, slots=True)
class SeenCard:
    """The card as the library sees it; `cache_bytes` is its last cache, None where the library does not tell.

    `free_bytes` is what all programs together have left of `total_bytes`.
    """

    name: str
    total_bytes: int
    free_bytes: int
    cache_bytes: int | None


class Kernels(Protocol):
    """One library on one card. Not for several threads."""

    @property
    def library(self) -> str:
        """Its name."""

    def versions(self) -> dict[str, str]:
        """Its version and that of what it was built for."""

    def card(self) -> SeenCard:
        """The card now."""

    def limit_memory(self, most_bytes: int) -> None:
        """Lets the library take no more of the card's memory than this, whatever it is asked for."""

    def streams(self, elements: int) -> Mapping[Stream, Work]:
        """The passes over three vectors of fp32 elements. Raises OutOfCardMemoryError."""

    def product(self, dtype: Dtype, size: int) -> Work:
        """The product of two square matrices of random numbers, tried once.

        Raises:
            NotOfferedError, OutOfCardMemoryError: it cannot be had.
        """

    def intervals_s(self, work: Work, count: int) -> list[float]:
        """Seconds of each of `count` passes, one behind the other, from event to event on the card."""

    def release(self) -> None:
        """Gives memory back that no work holds any more. Raises what the card has met in the meantime."""


BATCH = 25
"""Passes that are queued on the card before it is waited for: few enough to stop in time, and the first of a batch,
which an empty queue makes a little longer, weighs little."""

FEWEST = 5
"""Passes without which there is no median to speak of."""

_WARM_UP_SHARE = 1 / 3


class TooSlowError(Exception):
    """Not even the fewest passes fit into the time."""


def timed(kernels: Kernels, work: Work, plan: Plan, share_s: float, clock: Callable[[], float]) -> Timing:
    """Median and best of up to `plan.iterations` passes after `plan.warm_ups` of them, within `share_s` seconds.

    Where the time is short, warm-ups end after a third of it; of either kind there are always `FEWEST`. `clock` is in
    seconds, monotonic.

    Raises:
        TooSlowError: the time does not suffice for that.
        OutOfCardMemoryError: a pass needs more memory than there is.
        ValueError: the card's clock gave times that cannot be.
    """
    begun_at = clock()
    # The first pass loads code and picks kernels; the second one tells the pace.
    kernels.intervals_s(work, 1)
    pace_s = max(kernels.intervals_s(work, 1)[0], 0.0)
    ends_at = begun_at + share_s
    if pace_s * 2 * FEWEST > ends_at - clock():
        raise TooSlowError
    _passes(kernels, work, plan.warm_ups - 2, (begun_at + share_s * _WARM_UP_SHARE, clock), pace_s)
    return timing_of(_passes(kernels, work, plan.iterations, (ends_at, clock), pace_s))


def _passes(
    kernels: Kernels, work: Work, most: int, until: tuple[float, Callable[[], float]], pace_s: float
) -> list[float]:
    """Seconds of each pass: `most` of them, fewer where the time ends before, but never fewer than `FEWEST`."""
    ends_at, clock = until
    times_s: list[float] = []
    while (missing := most - len(times_s)) > 0:
        fits = int((ends_at - clock()) / pace_s) if pace_s > 0 else BATCH
        owed = FEWEST - len(times_s)
        if max(fits, owed) < 1:
            break
        times_s += kernels.intervals_s(work, min(missing, BATCH, max(fits, owed)))
    return times_s


WORKSPACE_BYTES = GIB // 2
"""What a library may take beside the buffers: cuBLAS wants 32 MiB on Hopper, hipBLASLt up to 128 MiB."""

CONTEXT_BYTES = GIB
"""What the worker's own context, and the driver, may hold of the card before anybody else is suspected."""


@dataclass(slots=True)
class Steps:
    """The steps of `plan` with `kernels`. `report` hears of each as it begins; `clock` is in seconds, monotonic."""

    kernels: Kernels
    plan: Plan
    report: Callable[[Progress], None]
    clock: Callable[[], float]
    _streams: list[StreamRate] = field(default_factory=list, init=False)
    _products: list[ProductRate] = field(default_factory=list, init=False)
    _skipped: list[Skipped] = field(default_factory=list, init=False)
    _done: int = field(default=0, init=False)
    _ends_at: float = field(default=0.0, init=False)

    def outcome(self) -> Outcome:
        """Everything that could be measured; what could not is in `skipped`.

        Raises:
            MeasureError: other programs hold the card, or nothing at all could be measured.
        """
        card = self.kernels.card()
        self._refuse_company(card)
        room = room_bytes(card.free_bytes)
        self.kernels.limit_memory(room + WORKSPACE_BYTES)
        self._ends_at = self.clock() + self.plan.seconds
        self._all_streams(room, card.cache_bytes)
        for dtype in self.plan.dtypes:
            self._all_sizes(dtype, room)
        if not self._streams and not self._products:
            reasons = dict.fromkeys(skipped.reason.message for skipped in self._skipped)
            raise MeasureError(Fault.NOTHING_MEASURED, "; ".join(reasons))
        return Outcome(
            self.kernels.library,
            self.kernels.versions(),
            card.name,
            card.total_bytes,
            tuple(self._streams),
            tuple(self._products),
            tuple(self._skipped),
        )

    def _refuse_company(self, card: SeenCard) -> None:
        """A second look, from inside: the parent has asked the driver, where there is a probe for it."""
        most = self.plan.most_held_fraction
        held = card.total_bytes - card.free_bytes
        if most is not None and held > most * card.total_bytes + CONTEXT_BYTES:
            raise MeasureError(Fault.CARD_IN_USE, f"{100 * held / card.total_bytes:.0f} % of its memory")

    def _all_streams(self, room: int, cache_bytes: int | None) -> None:
        elements = vector_elements(room, cache_bytes)
        try:
            passes = {} if elements is None else self.kernels.streams(elements)
            reason = SkipReason.NO_ROOM
        except OutOfCardMemoryError:
            passes, reason = {}, SkipReason.OUT_OF_MEMORY
        for stream in Stream:
            share_s = self._step(stream.value)
            work = passes.get(stream)
            if work is None or elements is None:
                self._skipped.append(Skipped(stream, None, reason))
                continue
            found = self._timing(work, share_s)
            if isinstance(found, Timing):
                self._streams.append(StreamRate(stream, elements * ELEMENT_BYTES, found))
            else:
                self._skipped.append(Skipped(stream, None, found))
        work, passes = None, {}
        self.kernels.release()

    def _all_sizes(self, dtype: Dtype, room: int) -> None:
        """From the smallest size up; what is not offered, or too slow, is so at the larger ones too."""
        for size in sorted(self.plan.sizes):
            share_s = self._step(f"{dtype.value} {size}")
            found = self._product(dtype, size, room, share_s)
            self.kernels.release()
            if isinstance(found, Timing):
                self._products.append(ProductRate(dtype, size, found))
                continue
            everywhere = found is SkipReason.NOT_OFFERED
            self._skipped.append(Skipped(dtype, None if everywhere else size, found))
            if everywhere or found is SkipReason.TOO_SLOW:
                self._done += sum(other > size for other in self.plan.sizes)
                return

    def _product(self, dtype: Dtype, size: int, room: int, share_s: float) -> Timing | SkipReason:
        if product_bytes(dtype, size) > room:
            return SkipReason.NO_ROOM
        try:
            work = self.kernels.product(dtype, size)
        except NotOfferedError:
            return SkipReason.NOT_OFFERED
        except OutOfCardMemoryError:
            return SkipReason.OUT_OF_MEMORY
        return self._timing(work, share_s)

    def _timing(self, work: Work, share_s: float) -> Timing | SkipReason:
        try:
            return timed(self.kernels, work, self.plan, share_s, self.clock)
        except TooSlowError:
            return SkipReason.TOO_SLOW
        except OutOfCardMemoryError:
            return SkipReason.OUT_OF_MEMORY
        except ValueError:
            return SkipReason.BAD_CLOCK

    def _step(self, name: str) -> float:
        """The share of the time that is left for the step that begins: what others did not need is shared, too."""
        count = len(Stream) + len(self.plan.dtypes) * len(self.plan.sizes)
        self.report(Progress(name, self._done, count))
        left = count - self._done
        self._done += 1
        return max(0.0, self._ends_at - self.clock()) / left
