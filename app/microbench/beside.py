"""Measured roofs beside the vendor's, where the catalog knows the card for certain."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from app.calc.dtypes import Dtype
from app.catalog.catalog import Catalog
from app.known_card import known_accelerator
from app.microbench.result import Achieved, MeasuredRoofs, achieved
from app.microbench.typical import BANDWIDTH, Band, matmul_band

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
        """The JSON-ready form."""
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
