"""All steps of a plan, one after the other, on one card."""

from collections.abc import Callable
from dataclasses import dataclass, field

from app.calc.dtypes import Dtype
from app.calc.units import GIB
from app.microbench.faults import Fault, MeasureError
from app.microbench.kernels import Kernels, NotOfferedError, OutOfCardMemoryError, SeenCard, Work
from app.microbench.outcome import Outcome, ProductRate, Progress, Skipped, SkipReason, Stream, StreamRate, Timing
from app.microbench.plan import ELEMENT_BYTES, Plan, product_bytes, room_bytes, vector_elements
from app.microbench.timed import TooSlowError, timed

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
