"""The cache of one sequence by context, beside what plain multi-head attention would keep.

Where a model's parameters sit: one bar a group, the largest on top.

The roofs of one accelerator: how high arithmetic may rise in each number format, and from which intensity on.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from app.calc.accelerator import Accelerator, ridge_flops_per_byte
from app.calc.dtypes import Dtype
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.model.architecture import Architecture
from app.calc.model.attention_variants import multi_head_bytes_per_sequence
from app.calc.model.layers.parts import WeightGroup
from app.calc.model.parameters import ParameterCounts
from app.calc.quantity import quantity, significant
from app.web.figure import Chart, Values, axis, layout, linear_axis, log_axis, note, table_of

KV_CACHE = Dtype.BF16
FIRST_TOKENS, LEAST_LAST_TOKENS = 1_024, 4_096
POINTS = 25
_GB = 1e9


def multi_head_chart(architecture: Architecture) -> Chart:
    """Log-log in bf16, from 1,024 tokens to the model's own limit."""
    last = architecture.max_position or LEAST_LAST_TOKENS
    first = min(FIRST_TOKENS, last // 2 or 1)
    context = np.unique(np.rint(np.geomspace(first, last, POINTS))).astype(float)
    own = np.asarray(kv_bytes_per_sequence(architecture, context, KV_CACHE) + 0 * context, dtype=float)
    plain = multi_head_bytes_per_sequence(architecture, context, KV_CACHE)
    lines = [_line(context, own, "This model", "decode", "solid")]
    seen = [own]
    if plain is not None:
        seen.append(np.asarray(plain, dtype=float))
        lines.append(_line(context, seen[1], "With multi-head attention", "rule", "dash"))
    low, high = min(float(v[0]) for v in seen) / _GB, max(float(v[-1]) for v in seen) / _GB
    figure = {
        "data": lines,
        "layout": layout(
            360,
            xaxis=log_axis("Context, tokens", first, last),
            yaxis=log_axis("Cache of one sequence, GB", low / 1.5, high * 1.5),
        ),
    }
    columns = ["context (tokens)", "this model (B)"] + (["with multi-head attention (B)"] if plain is not None else [])
    rows = [(int(c), *(float(values[at]) for values in seen)) for at, c in enumerate(context)]
    return Chart(
        "cache",
        "Cache against context",
        "What does its attention save?",
        _summary(last, [float(values[-1]) for values in seen]),
        figure,
        table_of(columns, rows),
    )


def _line(context: Values, values: Values, name: str, role: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": context.tolist(),
        "y": (values / _GB).tolist(),
        "line": {"color": f"@{role}", "width": 2.5, "dash": dash},
        "hovertemplate": f"{name}, %{{x:,}} tokens: %{{y:.4~g}} GB<extra></extra>",
    }


def _summary(tokens: int, held: list[float]) -> str:
    text = f"At {tokens:,} tokens, its limit, a sequence holds {quantity(held[0], 'B', 4)}"
    if len(held) == 1:
        return f"{text}."
    if math.isclose(held[0], held[1]):
        return f"{text}: it has plain multi-head attention, and saves nothing."
    times = significant(held[1] / held[0], 3)
    return f"{text}; with multi-head attention {quantity(held[1], 'B', 4)}, {times} times that."


BILLION = 1e9
GROUP_WORDS: Mapping[WeightGroup, str] = {
    WeightGroup.EMBEDDING: "Embedding",
    WeightGroup.ATTENTION: "Attention",
    WeightGroup.FEED_FORWARD: "Feed-forward",
    WeightGroup.SHARED_EXPERTS: "Shared experts",
    WeightGroup.ROUTED_EXPERTS: "Routed experts",
    WeightGroup.ROUTER: "Router",
    WeightGroup.NORMS: "Norms",
    WeightGroup.SIDE_PATHS: "Side paths",
    WeightGroup.HEAD: "Head",
}
VISION = "Vision tower"
_ROLES: Mapping[str, str] = {
    "Embedding": "head",
    "Head": "head",
    "Attention": "decode",
    "Feed-forward": "ffn",
    "Shared experts": "ffn",
    "Routed experts": "experts",
    VISION: "state",
}
_BAR_PX, _FRAME_PX = 30, 86


def parameter_groups(counts: ParameterCounts) -> dict[str, int]:
    """Parameters of each group that the model has, in the order of a pass; they sum to what a server loads."""
    found = {words: counts.group(group).total for group, words in GROUP_WORDS.items() if counts.group(group).total}
    return found | ({VISION: counts.vision} if counts.vision else {})


def parameter_chart(counts: ParameterCounts) -> Chart:
    """Horizontal bars in billions, each with its share; the table has every parameter."""
    groups, total = parameter_groups(counts), counts.total
    ranked = sorted(groups.items(), key=lambda item: item[1])
    largest = ranked[-1]
    figure = {
        "data": [_bars(ranked, total)],
        "layout": layout(
            _FRAME_PX + _BAR_PX * len(ranked),
            margin={"l": 110, "r": 20, "t": 8, "b": 44},
            showlegend=False,
            bargap=0.3,
            # A label stands outside of its bar: room for the one of the longest.
            xaxis=linear_axis("Parameters, 10⁹", largest[1], range=[0, 1.28 * largest[1] / BILLION]),
            yaxis=axis("", showgrid=False, ticksuffix=" "),
        ),
    }
    return Chart(
        "parameters",
        "Where the parameters sit",
        "Which part of the model takes the memory?",
        f"{largest[0]}: {largest[1]:,} of {total:,} parameters, {_share(largest[1], total)}.",
        figure,
        table_of(("group", "parameters", "share"), [(name, n, n / total) for name, n in groups.items()]),
    )


def _bars(ranked: list[tuple[str, int]], total: int) -> dict[str, Any]:
    names, values = [name for name, _ in ranked], [n for _, n in ranked]
    return {
        "type": "bar",
        "orientation": "h",
        "name": "Parameters",
        "x": [n / BILLION for n in values],
        "y": names,
        "text": [_share(n, total) for n in values],
        "textposition": "outside",
        "textfont": {"color": "@ink", "size": 11},
        "cliponaxis": False,
        "marker": {"color": [f"@{_ROLES.get(name, 'weights')}" for name in names]},
        "customdata": [f"{n:,}" for n in values],
        "hovertemplate": "%{y}: %{customdata} parameters, %{text}<extra></extra>",
    }


def _share(part: int, total: int) -> str:
    """A share in percent; what rounds to nothing says so."""
    percent = 100 * part / total
    return f"{percent:.1f} %" if percent >= 0.05 else "under 0.1 %"


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
        _accelerator_roofs_summary(peaks, ridges, bandwidth),
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


def _accelerator_roofs_summary(peaks: Mapping[Dtype, float], ridges: Mapping[Dtype, float], bandwidth: float) -> str:
    dtype = next((dtype for dtype in _SIXTEEN_BITS if dtype in peaks), max(peaks, key=lambda d: peaks[d]))
    return (
        f"In {dtype} at most {quantity(peaks[dtype], 'FLOP/s', 5)} over {quantity(bandwidth, 'B/s', 4)}: below "
        f"{significant(ridges[dtype], 4)} FLOP/B memory binds. Decode of one user does about 1 FLOP/B in 16 bits."
    )
