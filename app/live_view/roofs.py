"""Measured roofs in words: what a card really reached, beside what its vendor states and what is usual."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.calc.dtypes import Dtype
from app.calc.notation import quantity, significant
from app.catalog.catalog import Catalog
from app.charts.live_roofline import MeasuredRoofs as DrawnRoofs
from app.live.board import Board
from app.microbench.beside import Share, accelerator_of, achieved_on, shares
from app.microbench.result import MeasuredRoofs

_VERDICTS = {
    "usual": "as usual",
    "low": "below what is usual",
    "high": "above what is usual",
    "impossible": "more than the vendor states: another card, or another clock",
}


@dataclass(frozen=True, slots=True)
class RoofRow:
    """One measured roof: the rate, the vendor's, the share of it, and whether that is usual."""

    kind: str
    measured: str
    stated: str
    share: str
    verdict: str


@dataclass(frozen=True, slots=True)
class RoofsView:
    """One measurement of one card; `conditions` are those while it worked."""

    card: str
    measured_at: str
    with_what: str
    rows: Sequence[RoofRow]
    conditions: str


def roofs_views(runs: Sequence[MeasuredRoofs], catalog: Catalog) -> list[RoofsView]:
    """Every measurement, the newest first."""
    return [
        RoofsView(
            card=run.card_name,
            measured_at=f"{run.measured_at:%Y-%m-%d %H:%M} UTC",
            with_what=", ".join(f"{name} {version}" for name, version in run.versions.items()),
            rows=[_row(share) for share in shares(run, accelerator_of(run, catalog), catalog)],
            conditions=_conditions(run),
        )
        for run in runs
    ]


def drawn_roofs(
    accelerator_id: str, compute: Dtype, runs: Sequence[MeasuredRoofs], catalog: Catalog
) -> DrawnRoofs | None:
    """What the roofline draws dashed for an accelerator of the catalog; None where nothing was measured of it."""
    found = achieved_on(accelerator_id, runs, catalog)
    if found is None:
        return None
    drawn = DrawnRoofs(found.bandwidth_bytes_per_s, found.flops_per_s.get(compute))
    return None if drawn == DrawnRoofs(None, None) else drawn


def roofs_of(board: Board, runs: Sequence[MeasuredRoofs], catalog: Catalog) -> DrawnRoofs | None:
    """The same for the roofline of a board."""
    if board.accelerator is None or board.compute is None:
        return None
    return drawn_roofs(board.accelerator.id, board.compute, runs, catalog)


def _row(share: Share) -> RoofRow:
    usual = share.usual
    between = "" if usual is None else f" ({100 * usual.low:.0f} to {100 * usual.high:.0f} %)"
    return RoofRow(
        kind="memory bandwidth" if share.kind == "bandwidth" else f"{share.kind} matrices",
        measured=quantity(share.measured, share.unit, 4),
        stated="" if share.stated is None else quantity(share.stated, share.unit, 4),
        share="" if share.share is None else f"{significant(100 * share.share, 3)} %",
        verdict="" if share.verdict is None else f"{_VERDICTS[share.verdict]}{between}",
    )


def _conditions(run: MeasuredRoofs) -> str:
    state = run.under_load
    said = []
    if state.sm_clock_mhz.value is not None:
        said.append(f"SM clock {state.sm_clock_mhz.value:,} MHz")
    if state.power_draw_w.value is not None:
        limit = "" if state.power_limit_w.value is None else f" of {state.power_limit_w.value:,.0f}"
        said.append(f"{state.power_draw_w.value:,.0f}{limit} W")
    if state.temperature_c.value is not None:
        said.append(f"{state.temperature_c.value} °C")
    if state.throttle_reasons.value:
        said.append(f"clocks held down by {', '.join(state.throttle_reasons.value)}")
    return ", ".join(said)
