"""Where the running machine stands under its roofs now, with the way it took in the last minute."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.accelerator import Accelerator, attainable_flops_per_s, ridge_flops_per_byte
from app.calc.dtypes import Dtype
from app.calc.evaluate import Evaluation
from app.calc.quantity import quantity, significant
from app.calc.time.phase import PhaseCost
from app.machine.live.dots import GPM, Dot, Trail
from app.web.figure import Chart, layout, log_axis, note, plain, table_of, vertical, zone

HEIGHT, ROW_HEIGHT = 440, 20
LEAST_INTENSITY, MOST_INTENSITY = 1e-3, 1e6
"""A dot beyond these is a slip of a counter; the axes do not follow it."""
MOST_DRAWN = 6
"""Sources that are drawn; all are in the table."""
_SOURCES = ("plana", "planb", "planc", "pland")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up")


@dataclass(frozen=True, slots=True)
class MeasuredRoofs:
    """What a micro-benchmark reached on this card: bytes and FLOP a second, either of them where it was measured."""

    bandwidth_bytes_per_s: float | None
    flops_per_s: float | None


def live_roofline(
    accelerator: Accelerator,
    compute: Dtype,
    trails: Sequence[Trail],
    evaluation: Evaluation | None = None,
    measured: MeasuredRoofs | None = None,
) -> Chart:
    """Log-log: the vendor's roof solid, a measured one dashed, a dot with its tail for each source, predictions hollow.

    One GPU. `evaluation` gives where decode and prefill are expected; without it there are roofs and dots alone.
    """
    peak, bandwidth = accelerator.peak(compute), accelerator.bandwidth_bytes_per_s
    ridge = float(ridge_flops_per_byte(peak, bandwidth))
    found = [trail for trail in trails if trail.dots]
    shown = _drawn(found)
    phases = _phases(evaluation)
    low, high = _range([ridge / 30, ridge * 8, *_intensities(shown), *(x for _, x, _ in phases)])
    rates = [dot.flops_per_s for trail in shown for dot in trail.dots] + [y for _, _, y in phases]
    top = 10 ** math.ceil(math.log10(peak * 1.5))
    bottom = 10 ** math.floor(math.log10(max(top / 1e8, min([low * bandwidth, *(rate for rate in rates if rate > 0)]))))
    traces = [_roof(f"{compute} roof", peak, bandwidth, low, high, dashed=False)]
    if measured is not None:
        traces.append(_measured(measured, peak, bandwidth, low, high))
    traces += [_predicted(name, x, y) for name, x, y in phases]
    for at, trail in enumerate(shown):
        traces += _moving(trail, at)
    figure = {
        "data": traces,
        "layout": layout(
            HEIGHT + ROW_HEIGHT * max(0, len(shown) - 2),  # of the legend, which on a phone has a row for each
            xaxis=log_axis("Arithmetic intensity, FLOP/B", low, high),
            yaxis=log_axis("Arithmetic of one GPU, FLOP/s", bottom, top),
            shapes=[vertical(ridge, "ridge", "dot"), zone(low, ridge, "memoryzone"), zone(ridge, high, "computezone")],
            annotations=[
                note(
                    f"ridge {significant(ridge, 4)} FLOP/B",
                    math.log10(ridge),
                    math.log10(bottom * (top / bottom) ** 0.04),
                    xanchor="left",
                    xshift=4,
                ),
                note(
                    plain(accelerator.name),
                    math.log10(low * (high / low) ** 0.02),
                    math.log10(top / (top / bottom) ** 0.04),
                    xanchor="left",
                ),
            ],
        ),
    }
    rows = [
        (
            trail.label,
            now.intensity_flops_per_byte,
            now.flops_per_s,
            now.bytes_per_s,
            now.flops_per_s / peak,
            now.bytes_per_s / bandwidth,
            trail.read_from,
        )
        for trail in found
        for now in (trail.dots[-1],)
    ]
    columns = (
        "source",
        "intensity (FLOP/B)",
        "arithmetic (FLOP/s)",
        "bytes (B/s)",
        "of the peak rate",
        "of the bandwidth",
        "read from",
    )
    return Chart(
        "live-roofline",
        "Roofline, now",
        "How near to its roofs does the machine run?",
        f"{_summary(found, peak, bandwidth)}{_left_out(len(found) - len(shown))}",
        figure,
        table_of(columns, rows),
    )


def _phases(evaluation: Evaluation | None) -> list[tuple[str, float, float]]:
    """Intensity of each phase, and the arithmetic that is expected of it."""
    if evaluation is None:
        return []
    measures = evaluation.measures
    found: list[tuple[str, PhaseCost, float]] = [
        ("Decode, expected", measures.decode, measures.decode_s.best_known),
        ("Prefill, expected", measures.prefill, measures.prefill_s.best_known),
    ]
    return [(name, float(cost.intensity_flops_per_byte), float(cost.flops) / time_s) for name, cost, time_s in found]


def _intensities(trails: Sequence[Trail]) -> list[float]:
    found = [dot.intensity_flops_per_byte for trail in trails for dot in trail.dots]
    return [x for x in found if LEAST_INTENSITY < x < MOST_INTENSITY]


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Whole decades about all values, so that the axes stand still while the dot moves."""
    return 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)))


def _roof(name: str, peak: float, bandwidth: float, low: float, high: float, *, dashed: bool) -> dict[str, Any]:
    xs = [low, min(high, max(low, peak / bandwidth)), high]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": xs,
        "y": [float(attainable_flops_per_s(x, peak, bandwidth)) for x in xs],
        "line": {"color": "@roof", "width": 1.5 if dashed else 2.5, "dash": "dash" if dashed else "solid"},
        "hovertemplate": f"{name}: {quantity(peak, 'FLOP/s', 4)}, {quantity(bandwidth, 'B/s', 4)}<extra></extra>",
    }


def _measured(measured: MeasuredRoofs, peak: float, bandwidth: float, low: float, high: float) -> dict[str, Any]:
    """What was not measured is the vendor's."""
    return _roof(
        "measured roof",
        measured.flops_per_s or peak,
        measured.bandwidth_bytes_per_s or bandwidth,
        low,
        high,
        dashed=True,
    )


def _predicted(name: str, x: float, y: float) -> dict[str, Any]:
    decode = name.startswith("Decode")
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [x],
        "y": [y],
        "marker": {
            "color": "@decode" if decode else "@prefill",
            "size": 13,
            "symbol": "circle-open" if decode else "diamond-open",
            "line": {"width": 2},
        },
        "hovertemplate": f"{name}: %{{x:.4s}} FLOP/B, %{{y:.4s}}FLOP/s<extra></extra>",
    }


def _moving(trail: Trail, at: int) -> list[dict[str, Any]]:
    """The tail, and the dot at its end."""
    colour, name = f"@{_SOURCES[at % len(_SOURCES)]}", plain(trail.label)
    symbol = _SYMBOLS[(at + at // len(_SOURCES)) % len(_SYMBOLS)]
    dots = [dot for dot in trail.dots if dot.flops_per_s > 0 and dot.bytes_per_s > 0]
    tail = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": f"{name}, last minute",
        "x": [dot.intensity_flops_per_byte for dot in dots],
        "y": [dot.flops_per_s for dot in dots],
        "line": {"color": colour, "width": 1},
        "marker": {"color": colour, "size": 4, "opacity": [_faded(dot) for dot in dots], "symbol": symbol},
        "opacity": 0.55,
        "showlegend": False,
        "hoverinfo": "skip",
    }
    now = dots[-1:]
    when = f"{trail.dots[-1].age_s:.0f} s ago" if trail.is_over else "now"
    dot = {
        "type": "scatter",
        "mode": "markers",
        "name": f"{name}, measured {when}",
        "opacity": 0.5 if trail.is_over else 1.0,
        "x": [each.intensity_flops_per_byte for each in now],
        "y": [each.flops_per_s for each in now],
        "marker": {"color": colour, "size": 14, "symbol": symbol, "line": {"color": "@surface", "width": 2}},
        "hovertemplate": f"{name}, {when}: %{{x:.4s}} FLOP/B, %{{y:.4s}}FLOP/s<extra></extra>",
    }
    return [tail, dot]


def _faded(dot: Dot) -> float:
    return round(max(0.15, 1 - dot.age_s / 60), 2)


def _summary(trails: Sequence[Trail], peak: float, bandwidth: float) -> str:
    if not trails:
        return "Nothing moves yet: no card counts its activity and no server has told its tokens."
    trail = next((each for each in trails if not each.is_over), trails[0])
    now = trail.dots[-1]
    when = f", {now.age_s:.0f} s ago" if trail.is_over else ""
    return (
        f"{trail.label}{when}: {significant(100 * now.bytes_per_s / bandwidth, 3)} % of the bandwidth and "
        f"{significant(100 * now.flops_per_s / peak, 3)} % of the arithmetic, at "
        f"{significant(now.intensity_flops_per_byte, 3)} FLOP/B; read from {trail.read_from}."
    )


def _drawn(trails: Sequence[Trail]) -> list[Trail]:
    """Those for which there is room: cards and servers share it, and what one of them leaves the other has."""
    cards = [trail for trail in trails if trail.read_from == GPM]
    servers = [trail for trail in trails if trail.read_from != GPM]
    half = MOST_DRAWN // 2
    return cards[: max(half, MOST_DRAWN - len(servers))] + servers[: max(half, MOST_DRAWN - len(cards))]


def _left_out(count: int) -> str:
    return f" {count} more {'source is' if count == 1 else 'sources are'} in the table." if count > 0 else ""
