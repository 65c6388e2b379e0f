"""What others reached of the vendors' figures: the band beside which a measured roof is shown."""

from dataclasses import dataclass

from app.calc.dtypes import Dtype

_MATMUL_SOURCE = "ml-engineering, comparison of the best achieved matmul rates (mamf-finder)"


@dataclass(frozen=True, slots=True)
class Band:
    """Usual shares (0 to 1) of the vendor's figure, from `low` to `high`, and where that comes from."""

    low: float
    high: float
    source: str

    def document(self) -> dict[str, object]:
        """The JSON-ready form."""
        return {"low": self.low, "high": self.high, "source": self.source}


BANDWIDTH = Band(
    0.75,
    0.95,
    "published copies and triads: 77 % (nccl#1264), 86.7 % and 88 % (cuda-samples#392) of an H100's, "
    "83 % of a GH200's (BabelStream#194)",
)

_BEST: dict[tuple[str, Dtype], float] = {
    ("a100-sxm-80gb", Dtype.BF16): 0.869,
    ("gh200-96gb", Dtype.BF16): 0.838,
    ("h100-sxm-80gb", Dtype.BF16): 0.803,
    ("b300-sxm", Dtype.BF16): 0.786,
    ("b200-sxm", Dtype.BF16): 0.776,
    ("gb200", Dtype.BF16): 0.729,
    ("mi355x", Dtype.BF16): 0.680,
    ("mi325x", Dtype.BF16): 0.604,
    ("mi300x", Dtype.BF16): 0.514,
    ("h100-sxm-80gb", Dtype.FP8): 0.709,
    ("h200-sxm", Dtype.FP8): 0.734,
    ("b200-sxm", Dtype.FP8): 0.763,
}
_OF_VENDOR: dict[tuple[str, Dtype], tuple[float, float]] = {
    ("NVIDIA", Dtype.BF16): (0.729, 0.869),
    ("AMD", Dtype.BF16): (0.514, 0.680),
    ("NVIDIA", Dtype.FP8): (0.709, 0.763),
}
_SHORT_SEARCH = 0.8
"""A search of under a minute reaches 80 to 90 % of what the long one does, by the same source."""


def matmul_band(accelerator_id: str, vendor: str, dtype: Dtype) -> Band | None:
    """The usual share of the vendor's matrix rate on this card; None where nothing was published of such a one.

    Up to the best that was published of the card, else of the vendor's others; down to 0.8 of the lowest of them, for
    few sizes are tried here and not for long. What is known of bf16 holds for fp16, which has the same rate.
    """
    known = Dtype.BF16 if dtype is Dtype.FP16 else dtype
    best = _BEST.get((accelerator_id, known))
    span = (best, best) if best is not None else _OF_VENDOR.get((vendor, known))
    return None if span is None else Band(round(_SHORT_SEARCH * span[0], 3), span[1], _MATMUL_SOURCE)
