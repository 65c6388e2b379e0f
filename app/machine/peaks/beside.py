"""Measured roofs beside the vendor's and what is usual, where the catalog knows the card; `tokenroof measure`."""

import asyncio
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from app.calc.dtypes import Dtype
from app.calc.quantity import GIB, quantity
from app.catalog.catalog import Catalog
from app.catalog.match import known_accelerator
from app.machine.peaks.measure import NotKeptError, Rig, measure
from app.machine.peaks.outcome import Fault, MeasureError, Progress
from app.machine.peaks.result import Achieved, MeasuredRoofs, achieved

_MATMUL_SOURCE = "ml-engineering, comparison of the best achieved matmul rates (mamf-finder)"


@dataclass(frozen=True, slots=True)
class Band:
    """Usual shares (0 to 1) of the vendor's figure, from `low` to `high`, and where that comes from."""

    low: float
    high: float
    source: str

    def document(self) -> dict[str, object]:
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


MOST_SHARE = 1.02
"""Beyond the vendor's figure by more than rounding there is a mistake: another card, or another clock."""


@dataclass(frozen=True, slots=True)
class Share:
    """One measured roof: `measured` and the catalog's `stated` in B/s or FLOP/s, and what is usual.

    `kind` is "bandwidth" or a number format. `stated` is None where the catalog has no such rate.
    """

    kind: str
    unit: str
    measured: float
    stated: float | None
    usual: Band | None

    @property
    def share(self) -> float | None:
        """Measured ÷ stated."""
        return None if not self.stated else self.measured / self.stated

    @property
    def verdict(self) -> Literal["usual", "low", "high", "impossible"] | None:
        """Beside the band; above what the vendor states it is "impossible". None where there is nothing to compare."""
        if self.share is None:
            return None
        if self.share > MOST_SHARE:
            return "impossible"
        if self.usual is None:
            return None
        return "low" if self.share < self.usual.low else "high" if self.share > self.usual.high else "usual"

    def document(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "unit": self.unit,
            "measured": self.measured,
            "stated": self.stated,
            "share": self.share,
            "verdict": self.verdict,
            "usual": self.usual.document() if self.usual is not None else None,
        }


def accelerator_of(run: MeasuredRoofs, catalog: Catalog) -> str | None:
    """The id of the one accelerator that was measured for certain, or None."""
    return known_accelerator(run.card_name, run.memory_total_bytes, catalog)


def achieved_on(accelerator_id: str, runs: Iterable[MeasuredRoofs], catalog: Catalog) -> Achieved | None:
    """The measured roofs of an accelerator of the catalog, to be drawn dashed; None where it was never measured."""
    of_it = [run for run in runs if accelerator_of(run, catalog) == accelerator_id]
    return achieved(of_it) if of_it else None


def shares(run: MeasuredRoofs, id_: str | None, catalog: Catalog) -> tuple[Share, ...]:
    """Each roof of one measurement beside what the catalog states of the accelerator `id_`: the bandwidth first."""
    found = achieved([run])
    device = None if id_ is None else catalog.devices[id_]
    vendor = "" if id_ is None else catalog.accelerators[id_].vendor
    rows = []
    if found.bandwidth_bytes_per_s is not None:
        stated = None if device is None else device.bandwidth_bytes_per_s
        rows.append(Share("bandwidth", "B/s", found.bandwidth_bytes_per_s, stated, BANDWIDTH))
    for dtype in Dtype:
        if dtype in found.flops_per_s:
            peak = None if device is None else device.peak_flops_per_s.get(dtype)
            usual = None if id_ is None else matmul_band(id_, vendor, dtype)
            rows.append(Share(dtype.value, "FLOP/s", found.flops_per_s[dtype], peak, usual))
    return tuple(rows)


def roofs_document(run: MeasuredRoofs, catalog: Catalog) -> dict[str, object]:
    """A measurement as JSON, with the accelerator of the catalog that it is of, and its shares of the vendor's."""
    id_ = accelerator_of(run, catalog)
    return run.document() | {"accelerator": id_, "beside": [share.document() for share in shares(run, id_, catalog)]}


def run_measurement(rig: Rig, catalog: Catalog, device: int, seconds: float, *, as_json: bool) -> int:
    """The exit status: 0 with the roofs on the standard output, 1 with a refusal in one line on the error stream.

    Progress goes to the error stream. Ctrl-C ends the worker, too.
    """
    try:
        roofs = asyncio.run(measure(rig, device, seconds, report=_tell))
    except NotKeptError as error:
        roofs = error.roofs
        print(f"tokenroof: {error}", file=sys.stderr)
    except (MeasureError, ValueError) as error:
        print(f"tokenroof: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"tokenroof: {MeasureError(Fault.STOPPED)}", file=sys.stderr)
        return 1
    if as_json:
        print(json.dumps(roofs_document(roofs, catalog), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(_lines(roofs, catalog)))
    return 0


def _tell(progress: Progress) -> None:
    print(f"{progress.done + 1}/{progress.of} {progress.step}", file=sys.stderr)


def _lines(roofs: MeasuredRoofs, catalog: Catalog) -> Iterator[str]:
    versions = ", ".join(f"{name} {version}" for name, version in roofs.versions.items())
    yield f"{roofs.card_name}, {roofs.memory_total_bytes / GIB:.1f} GiB; {versions}"
    for share in shares(roofs, accelerator_of(roofs, catalog), catalog):
        yield f"  {share.kind:<10} {quantity(share.measured, share.unit, 4):<14} {_words(share)}"
    for skipped in roofs.skipped:
        size = "" if skipped.size is None else f" {skipped.size}"
        yield f"  {skipped.kind.value}{size}: {skipped.reason.message}"
    state = roofs.under_load
    said = [
        f"{quantity(reading.value, '', 4)} {reading.unit}"
        for reading in (state.sm_clock_mhz, state.power_draw_w, state.temperature_c)
        if reading.value is not None
    ]
    if state.throttle_reasons.value:
        said.append("held down by " + ", ".join(why.replace("_", " ") for why in state.throttle_reasons.value))
    if said:
        yield f"  under load: {', '.join(said)}"


def _words(share: Share) -> str:
    if share.share is None:
        return "of a rate that the catalog does not state" if share.stated is None else ""
    usual = "" if share.usual is None else f"; {100 * share.usual.low:.0f} to {100 * share.usual.high:.0f} % is usual"
    if share.verdict == "impossible":
        usual = "; that cannot be: the card, or its clock, is another than the catalog's"
    return f"{100 * share.share:.1f} % of the vendor's {quantity(share.stated or 0.0, share.unit, 4)}{usual}"
