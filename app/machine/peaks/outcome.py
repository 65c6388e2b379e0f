"""What the worker found or why not, in seconds and sizes, and its lines. Light: the worker and its parent share it."""

import json
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from app.calc.dtypes import Dtype


class Fault(StrEnum):
    """The stable code that clients may rely on."""

    NO_LIBRARY = "no_library"
    NOT_LOADABLE = "not_loadable"
    NO_ACCELERATOR = "no_accelerator"
    NO_SUCH_CARD = "no_such_card"
    CARD_FAULT = "card_fault"
    MIG_ENABLED = "mig_enabled"
    CARD_IN_USE = "card_in_use"
    RUNNING = "running"
    NOTHING_MEASURED = "nothing_measured"
    OUT_OF_HOST_MEMORY = "out_of_host_memory"
    TIMEOUT = "timeout"
    DIED = "died"
    GARBLED = "garbled"
    FLOODED = "flooded"
    NOT_STARTED = "not_started"
    NOT_KEPT = "not_kept"
    STOPPED = "stopped"
    UNFORESEEN = "unforeseen"


class MeasureError(Exception):
    """No roofs came of it. `detail` fills the sentence's gap: a library's name, a share, a signal; never a path."""

    def __init__(self, fault: Fault, detail: str = "") -> None:
        self.fault, self.detail = fault, detail
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """One plain sentence for a person."""
        return _SENTENCES[self.fault].replace("{}", self.detail or "it")

    def document(self) -> dict[str, str]:
        """The JSON-ready form: `code` and `message`."""
        return {"code": self.fault.value, "message": self.message}


_SENTENCES: dict[Fault, str] = {
    Fault.NO_LIBRARY: "Neither torch nor cupy is installed beside the server; a card is measured with one of them.",
    Fault.NOT_LOADABLE: "What is installed as {} cannot be loaded; the server's log has its words.",
    Fault.NO_ACCELERATOR: "There is no accelerator that {} can use; the processor is no stand-in for one.",
    Fault.NO_SUCH_CARD: "There is no card of that number. They count from 0; cards that can be seen: {}.",
    Fault.CARD_FAULT: "The card cannot be measured now: {}",
    Fault.MIG_ENABLED: "The card is split into MIG instances; what a slice reaches is no roof of the card.",
    Fault.CARD_IN_USE: "Other programs use the card ({}); what is measured beside them is no roof. Stop them first.",
    Fault.RUNNING: "A measurement is under way on this machine; there is one at a time.",
    Fault.NOTHING_MEASURED: "Nothing could be measured: {}.",
    Fault.OUT_OF_HOST_MEMORY: "The measurement wanted more of the machine's memory than it may have.",
    Fault.TIMEOUT: "The measurement took longer than {} and was ended.",
    Fault.DIED: "The measurement ended without a result ({}); the server's log has its last words.",
    Fault.GARBLED: "The measurement answered with something that is no result.",
    Fault.FLOODED: "The measurement wrote more than a result can be, and was ended.",
    Fault.NOT_STARTED: "The process that measures could not be started.",
    Fault.NOT_KEPT: "The card was measured, but the result could not be written to the data folder.",
    Fault.STOPPED: "The measurement was stopped.",
    Fault.UNFORESEEN: "Something unforeseen went wrong; the server's log has it.",
}


SHORTEST_S, LONGEST_S = 1e-7, 3600.0
"""A pass takes longer than a card needs to begin one, and less than any measurement may."""

MOST_ARRAY_BYTES = 2**43
MOST_SIZE = 2**20
_STEP = re.compile(r"[a-z0-9]{1,20}( [0-9]{1,8})?")


class Stream(StrEnum):
    """The passes over memory, with fp32 elements: `copy` is a = b, `triad` is a = b + s × c."""

    COPY = "copy"
    TRIAD = "triad"

    @property
    def arrays(self) -> int:
        """Arrays that each pass reads or writes, as BabelStream counts them: N bytes each."""
        return {Stream.COPY: 2, Stream.TRIAD: 3}[self]


class SkipReason(StrEnum):
    """Why something of the plan has no figure."""

    NOT_OFFERED = "not_offered"
    NO_ROOM = "no_room"
    OUT_OF_MEMORY = "out_of_memory"
    TOO_SLOW = "too_slow"
    BAD_CLOCK = "bad_clock"

    @property
    def message(self) -> str:
        """The reason in words, to stand behind what was skipped."""
        return _MESSAGES[self]


_MESSAGES = {
    SkipReason.NOT_OFFERED: "the library or the card does not offer it",
    SkipReason.NO_ROOM: "the free memory that may be taken is too small for it",
    SkipReason.OUT_OF_MEMORY: "the card ran out of memory",
    SkipReason.TOO_SLOW: "the time did not suffice for it",
    SkipReason.BAD_CLOCK: "the card's clock gave times that cannot be",
}


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one pass, by the card's own clock: the median and the best of `iterations`.

    Raises:
        ValueError: the times cannot be.
    """

    iterations: int
    median_s: float
    best_s: float

    def __post_init__(self) -> None:
        if not (self.iterations >= 1 and SHORTEST_S <= self.best_s <= self.median_s <= LONGEST_S):
            raise ValueError("A timing has a best time, and a median that does not undercut it.")


@dataclass(frozen=True, slots=True)
class StreamRate:
    """A pass over arrays of `array_bytes` each."""

    stream: Stream
    array_bytes: int
    timing: Timing

    def __post_init__(self) -> None:
        if not 1 <= self.array_bytes <= MOST_ARRAY_BYTES:
            raise ValueError("An array has bytes, and no more than there are cards for.")

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written in a pass. Worked number: a triad over arrays of 1 GiB moves 3 GiB."""
        return self.stream.arrays * self.array_bytes

    @property
    def best_bytes_per_s(self) -> float:
        """The rate of the best pass: what a roof is drawn at."""
        return self.moved_bytes / self.timing.best_s

    @property
    def median_bytes_per_s(self) -> float:
        """The rate of the median pass."""
        return self.moved_bytes / self.timing.median_s


@dataclass(frozen=True, slots=True)
class ProductRate:
    """A product of two square matrices, M = N = K = `size`, with random contents."""

    dtype: Dtype
    size: int
    timing: Timing

    def __post_init__(self) -> None:
        if not 1 <= self.size <= MOST_SIZE:
            raise ValueError("A matrix has a size, and none that no card could hold.")

    @property
    def flops(self) -> int:
        """2 × M × N × K. Worked number: 2 × 8,192³ = 1.0995 TFLOP."""
        return 2 * self.size**3

    @property
    def best_flops_per_s(self) -> float:
        """The rate of the best product: what a roof is drawn at."""
        return self.flops / self.timing.best_s

    @property
    def median_flops_per_s(self) -> float:
        """The rate of the median product."""
        return self.flops / self.timing.median_s


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something of the plan without a figure: a stream, or a number format (at one `size`, or None for all)."""

    kind: Stream | Dtype
    size: int | None
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that was found: of which card (its name and bytes as the library says), with which library and versions."""

    library: str
    versions: dict[str, str]
    card_name: str
    memory_total_bytes: int
    streams: tuple[StreamRate, ...]
    products: tuple[ProductRate, ...]
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """Which step has begun ("bf16 8192"), and how many of all are behind it."""

    step: str
    done: int
    of: int

    def __post_init__(self) -> None:
        if not 0 <= self.done < self.of <= 1000 or not _STEP.fullmatch(self.step):
            raise ValueError("A step is one of those that there are.")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no outcome; `detail` as in MeasureError."""

    fault: Fault
    detail: str = ""


def timing_of(times_s: Sequence[float]) -> Timing:
    """Median and best of the times. Raises ValueError where one of them cannot be."""
    if not times_s or not all(math.isfinite(time_s) for time_s in times_s):
        raise ValueError("A pass takes a time.")
    return Timing(len(times_s), statistics.median(times_s), min(times_s))


MOST_LINE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Line:
    """Exactly one of the three."""

    progress: Progress | None = None
    outcome: Outcome | None = None
    failure: Failure | None = None

    def __post_init__(self) -> None:
        """Refuses a line that says nothing, or two things."""
        if sum(part is not None for part in (self.progress, self.outcome, self.failure)) != 1:
            raise ValueError("A line says one thing.")

    @property
    def said(self) -> Progress | Outcome | Failure:
        said = self.progress or self.outcome or self.failure
        assert said is not None  # noqa: S101 - `__post_init__` has seen to it
        return said


def line_of(said: Progress | Outcome | Failure) -> bytes:
    """One line, with its end. Raises ValueError where it would hold a number that is none."""
    return json.dumps({type(said).__name__.lower(): asdict(said)}, allow_nan=False).encode() + b"\n"
