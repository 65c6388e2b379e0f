"""What is measured, how often, in how much memory and time. Light: the worker reads it before any library is loaded."""

import json
import math
from dataclasses import asdict, dataclass

from app.calc.dtypes import Dtype
from app.calc.quantity import GIB, MIB

LIBRARIES = ("torch", "cupy")
DEFAULT_SECONDS = 60.0
FEWEST_SECONDS, MOST_SECONDS = 5.0, 600.0
MOST_DEVICES = 256

START_AND_STOP_S = 30.0
"""What loading a library, making a context and filling buffers may take on top of the measuring: a cold start of torch
from a slow disk takes most of it."""

MOST_HELD_FRACTION = 0.10
"""From this share of the card's memory in the hands of others on nothing is measured."""

FREE_FRACTION = 0.25
MOST_BUFFER_BYTES = 8 * GIB
"""All buffers together take the smaller of this and a quarter of what is free: nobody else is pushed out."""

BUFFER_BYTES = GIB
CACHES_PER_BUFFER = 4
UNKNOWN_CACHE_BYTES = 128 * MIB
"""A buffer is at least 1 GiB and four times the last cache, so that no pass finds what the one before left behind.
A cache whose size the library does not tell is taken to be as large as the largest that are sold."""

SIZES = (4096, 8192, 16384)
DTYPES = (Dtype.BF16, Dtype.FP16, Dtype.FP8, Dtype.INT8, Dtype.TF32, Dtype.FP32)
ELEMENT_BYTES = 4  # of the vectors: fp32

_FILLING_BYTES = 4
_OUTPUT_BYTES = {Dtype.FP8: 2, Dtype.INT8: 4}


@dataclass(frozen=True, slots=True)
class Plan:
    """One measurement. `device` is the number of the card as the library counts, which sees one card if it is pinned.

    `libraries` are tried in this order. `seconds` is the time for all that is timed, warm-ups included.
    `most_held_fraction` is None where memory in use says nothing about the card, because it is the machine's own.
    `host_bytes` limits the worker's own memory; see `app.machine.peaks.worker`.

    Raises:
        ValueError: the time is not between `FEWEST_SECONDS` and `MOST_SECONDS`, or there can be no such device.
    """

    device: int = 0
    seconds: float = DEFAULT_SECONDS
    libraries: tuple[str, ...] = LIBRARIES
    most_held_fraction: float | None = MOST_HELD_FRACTION
    sizes: tuple[int, ...] = SIZES
    dtypes: tuple[Dtype, ...] = DTYPES
    warm_ups: int = 50
    iterations: int = 100
    host_bytes: int = 16 * GIB

    def __post_init__(self) -> None:
        """Refuses what cannot be carried out."""
        if not (math.isfinite(self.seconds) and FEWEST_SECONDS <= self.seconds <= MOST_SECONDS):
            raise ValueError(f"A measurement takes {FEWEST_SECONDS:g} to {MOST_SECONDS:g} seconds.")
        if not 0 <= self.device < MOST_DEVICES:
            raise ValueError(f"A device is a number from 0 to {MOST_DEVICES - 1}.")

    @property
    def timeout_s(self) -> float:
        """After this long, by the wall clock, the worker is ended: 90 s of the default plan."""
        return self.seconds + START_AND_STOP_S

    def line(self) -> bytes:
        """The plan as one line of JSON."""
        return json.dumps(asdict(self)).encode() + b"\n"


def plan_of(line: bytes) -> Plan:
    """The plan of its line. Raises ValueError, TypeError: it is none."""
    told = json.loads(line)
    for name in ("libraries", "sizes", "dtypes"):
        told[name] = tuple(told[name])
    told["dtypes"] = tuple(Dtype(name) for name in told["dtypes"])
    return Plan(**told)


def room_bytes(free_bytes: int) -> int:
    """How much of the card's free memory all buffers together may take: 8 GiB of an empty 80 GB card, 6 GiB of 24."""
    return int(min(FREE_FRACTION * free_bytes, MOST_BUFFER_BYTES))


def vector_elements(room: int, cache_bytes: int | None, arrays: int = 3) -> int | None:
    """fp32 elements of each of `arrays` vectors in `room` bytes; None where they could not outgrow the cache."""
    outgrown = CACHES_PER_BUFFER * (cache_bytes or UNKNOWN_CACHE_BYTES)
    each = min(max(BUFFER_BYTES, outgrown), room // arrays)
    return each // ELEMENT_BYTES if each >= outgrown else None


def product_bytes(dtype: Dtype, size: int) -> int:
    """Bytes that a product of two square matrices needs: both, their product, and one more while they are filled.

    Worked number: bf16 at 16,384 is (3 × 2 + 4) × 16,384² = 2.5 GiB.
    """
    operand = int(dtype.bytes)
    return (2 * operand + _OUTPUT_BYTES.get(dtype, operand) + _FILLING_BYTES) * size * size
