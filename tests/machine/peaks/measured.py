"""Measurements to keep and to show."""

from datetime import UTC, datetime
from typing import Any

from app.calc.dtypes import Dtype
from app.machine.peaks.outcome import ProductRate, Skipped, SkipReason, Stream, StreamRate, Timing
from app.machine.peaks.result import CardState, MeasuredRoofs
from app.machine.probes.reading import Absence
from tests.machine.peaks.workers import NAME, TOTAL_BYTES, card

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def stream(best_bytes_per_s: float, of: Stream = Stream.COPY) -> StreamRate:
    """A stream over arrays of a gibibyte, the median a tenth slower than the best."""
    best_s = of.arrays * 2**30 / best_bytes_per_s
    return StreamRate(of, 2**30, Timing(100, 1.1 * best_s, best_s))


def product(best_flops_per_s: float, dtype: Dtype = Dtype.BF16, size: int = 8192) -> ProductRate:
    """A product, the median a tenth slower than the best."""
    best_s = 2 * size**3 / best_flops_per_s
    return ProductRate(dtype, size, Timing(100, 1.1 * best_s, best_s))


def roofs(**changed: Any) -> MeasuredRoofs:
    """An H100 that reached 2.9 TB/s and 790 TFLOP/s, but for what is changed."""
    state = CardState.of(card())
    given: dict[str, Any] = {
        "card_name": NAME,
        "memory_total_bytes": TOTAL_BYTES,
        "measured_at": AT,
        "library": "torch",
        "versions": {"torch": "2.9.1", "cuda": "13.0", "driver": "580.95.05"},
        "before": state,
        "under_load": state,
        "after": CardState.unknown(Absence.TIMEOUT),
        "streams": (stream(2.9e12), stream(2.8e12, Stream.TRIAD)),
        "products": (product(7.0e14, size=4096), product(7.9e14)),
        "skipped": (Skipped(Dtype.FP8, None, SkipReason.NOT_OFFERED), Skipped(Dtype.FP32, 16384, SkipReason.TOO_SLOW)),
    }
    return MeasuredRoofs(**(given | changed))
