"""The roofline: the least time of work that must be computed at a peak and moved at a bandwidth, and which one binds.

Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009.
"""

from enum import StrEnum

from app.calc.broadcast import Quantity, maximum, minimum


class Bound(StrEnum):
    """Which roof stops the work."""

    MEMORY_BANDWIDTH = "memory_bandwidth"
    COMPUTE = "compute"
    INTERCONNECT = "interconnect"


def ridge_flops_per_byte(peak_flops_per_s: Quantity, bandwidth_bytes_per_s: Quantity) -> Quantity:
    """Intensity at which the two roofs meet: peak ÷ bandwidth, in FLOP/B. Below it memory binds.

    Worked number: 989e12 ÷ 3.35e12 = 295.2 FLOP/B for an H100 SXM in 16 bits.
    """
    return peak_flops_per_s / bandwidth_bytes_per_s


def time_s(flops: Quantity, moved_bytes: Quantity, peak_flops_per_s: float, bandwidth_bytes_per_s: float) -> Quantity:
    """Least time of one operator: max(FLOP ÷ peak, bytes ÷ bandwidth), perfect overlap of the two.

    Worked number: 16.06e9 B ÷ 3.35e12 B/s = 4.79 ms for the weights of Llama-3.1-8B; their 16.06e9 FLOP take 0.016 ms.
    """
    return maximum(flops / peak_flops_per_s, moved_bytes / bandwidth_bytes_per_s)


def attainable_flops_per_s(
    intensity_flops_per_byte: Quantity, peak_flops_per_s: float, bandwidth_bytes_per_s: float
) -> Quantity:
    """Height of the roof above an intensity: min(peak, intensity × bandwidth)."""
    return minimum(peak_flops_per_s, intensity_flops_per_byte * bandwidth_bytes_per_s)
