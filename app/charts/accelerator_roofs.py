"""The roofs of one accelerator: how high arithmetic may rise in each number format, and from which intensity on."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from app.calc.accelerator import Accelerator
from app.calc.dtypes import Dtype
from app.calc.notation import quantity, significant
from app.calc.roofline import ridge_flops_per_byte
from app.charts.figure import Chart, layout, log_axis, note, table_of

HEIGHT = 400
_SIXTEEN_BITS = (Dtype.BF16, Dtype.FP16)
_DASHES = ("dash", "dot", "dashdot", "longdash", "longdashdot")
_CLOSE = 1.35
"""Roofs nearer than this ratio would have their labels on each other."""
_Merged = Sequence[tuple[float, list[Dtype]]]


def accelerator_roofs(device: Accelerator) -> Chart | None:
    """Log-log: one roof for each dense rate with its ridge; None where no rate is known, so that nothing is drawn."""
    peaks = {dtype: device.peak_flops_per_s[dtype] for dtype in Dtype if dtype in device.peak_flops_per_s}
    if not peaks:
        return None
    bandwidth = device.bandwidth_bytes_per_s
    ridges = {dtype: float(ridge_flops_per_byte(peak, bandwidth)) for dtype, peak in peaks.items()}
    low = 10 ** math.floor(math.log10(min(ridges.values()) / 8))
    high = 10 ** math.ceil(math.log10(max(ridges.values()) * 8))
    bottom = 10 ** math.floor(math.log10(low * bandwidth))
    top = 10 ** math.ceil(math.log10(max(peaks.values()) * 1.4))
    merged = _merged(peaks)
    figure = {
        "data": [_slope(bandwidth, low, max(ridges.values())), *_roofs(merged, bandwidth, high)],
        "layout": layout(
            HEIGHT,
            margin={"l": 64, "r": 20, "t": 12, "b": 48},
            showlegend=False,
            xaxis=log_axis("Arithmetic intensity, FLOP/B", low, high),
            yaxis=log_axis("Arithmetic, FLOP/s", bottom, top),
            annotations=[*_labels(merged, bandwidth, high), _slope_label(bandwidth, low, min(ridges.values()))],
        ),
    }
    rows = [(dtype.value, peak, ridges[dtype]) for dtype, peak in peaks.items()]
    return Chart(
        "roofs",
        "Roofs",
        "How much arithmetic must each byte bring before memory no longer binds?",
        _summary(peaks, ridges, bandwidth),
        figure,
        table_of(("format", "dense rate (FLOP/s)", "ridge (FLOP/B)"), rows),
    )


def _merged(peaks: Mapping[Dtype, float]) -> _Merged:
    """Rates from the lowest up, each with the formats that share it: one line is drawn for them."""
    by_rate: dict[float, list[Dtype]] = {}
    for dtype, peak in peaks.items():
        by_rate.setdefault(peak, []).append(dtype)
    return sorted(by_rate.items())


def _slope(bandwidth: float, low: float, high: float) -> dict[str, Any]:
    """What memory allows: the slope that all roofs share, up to the ridge of the highest."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "memory",
        "x": [low, high],
        "y": [low * bandwidth, high * bandwidth],
        "line": {"color": "@roof", "width": 2.5},
        "hovertemplate": f"memory: {quantity(bandwidth, 'B/s', 4)}<extra></extra>",
    }


def _roofs(merged: _Merged, bandwidth: float, high: float) -> list[dict[str, Any]]:
    """A level line from each ridge on; that of 16 bits is the usual one, and solid."""
    found = []
    for at, (peak, formats) in enumerate(merged):
        usual = any(dtype in _SIXTEEN_BITS for dtype in formats)
        ridge = float(ridge_flops_per_byte(peak, bandwidth))
        names = ", ".join(formats)
        found.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": names,
                "x": [ridge, high],
                "y": [peak, peak],
                "line": {
                    "color": "@roof",
                    "width": 2.5 if usual else 1.5,
                    "dash": "solid" if usual else _DASHES[at % len(_DASHES)],
                },
                "marker": {
                    "color": "@decode",
                    "size": [9, 0],
                    "opacity": 1,
                    "line": {"color": "@surface", "width": 1.5},
                },
                "hovertemplate": f"{names}: {_rate(peak, formats, 5)}, ridge {significant(ridge, 4)} FLOP/B"
                "<extra></extra>",
            }
        )
    return found


def _labels(merged: _Merged, bandwidth: float, high: float) -> list[dict[str, Any]]:
    """Formats at the right end of each roof, its ridge at the left; where the next is near, below and alone."""
    crowded = {lower for (lower, _), (upper, _) in pairwise(merged) if upper < _CLOSE * lower}
    labels = []
    for peak, formats in merged:
        anchor = "top" if peak in crowded else "bottom"
        ridge = float(ridge_flops_per_byte(peak, bandwidth))
        at = math.log10(peak)
        labels.append(_label(", ".join(formats), math.log10(high), at, xanchor="right", yanchor=anchor, color="@ink"))
        if peak not in crowded:
            ridge_text = f"ridge {significant(ridge, 4)}"
            labels.append(_label(ridge_text, math.log10(ridge), at, xanchor="right", yanchor="bottom", xshift=-6))
    return labels


def _rate(peak: float, formats: Sequence[Dtype], digits: int) -> str:
    """A rate with its unit; operations where no format of it floats."""
    floats = any(dtype.value[0] != "i" for dtype in formats)
    text = quantity(peak, "FLOP/s", digits)
    return text if floats else text.replace("FLOP", "OP")


def _slope_label(bandwidth: float, low: float, ridge: float) -> dict[str, Any]:
    """The bandwidth, to the right of the slope."""
    x = low * (ridge / low) ** 0.4
    text = f"memory · {quantity(bandwidth, 'B/s', 4)}"
    return _label(text, math.log10(x), math.log10(x * bandwidth), xanchor="left", yanchor="top", xshift=8)


def _label(text: str, x: float, y: float, *, color: str = "@muted", **more: Any) -> dict[str, Any]:
    """A label at exponents, as an annotation of a logarithmic axis wants them."""
    return note(text, x, y, font={"color": color, "size": 11}, bgcolor="@clear", **more)


def _summary(peaks: Mapping[Dtype, float], ridges: Mapping[Dtype, float], bandwidth: float) -> str:
    dtype = next((dtype for dtype in _SIXTEEN_BITS if dtype in peaks), max(peaks, key=lambda d: peaks[d]))
    return (
        f"In {dtype} at most {quantity(peaks[dtype], 'FLOP/s', 5)} over {quantity(bandwidth, 'B/s', 4)}: below "
        f"{significant(ridges[dtype], 4)} FLOP/B memory binds. Decode of one user does about 1 FLOP/B in 16 bits."
    )
