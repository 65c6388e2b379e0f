"""Where prefill and decode stand under the roofs of the accelerator."""

import math
from typing import Any

from app.calc.accelerator import Accelerator, attainable_flops_per_s, ridge_flops_per_byte
from app.calc.dtypes import Dtype
from app.calc.evaluate import Evaluation
from app.calc.quantity import quantity, significant
from app.calc.time.phase import PhaseCost
from app.calc.verdict import ROOF_WORDS
from app.web.figure import (
    LANDMARKS,
    BatchSeries,
    Chart,
    batch_series,
    layout,
    log_axis,
    note,
    plain,
    table_of,
    vertical,
    zone,
)


def roofline_chart(evaluation: Evaluation) -> Chart:
    """Log-log: attainable FLOP/s by arithmetic intensity, the phases, and decode's path as the batch grows."""
    accelerator, compute = evaluation.deployment.accelerator, evaluation.deployment.precision.compute
    prefill, decode = evaluation.measures.prefill, evaluation.measures.decode
    series = batch_series(evaluation)
    ridge = float(ridge_flops_per_byte(accelerator.peak(compute), accelerator.bandwidth_bytes_per_s))
    low = 10 ** math.floor(
        math.log10(0.5 * min(ridge, series.intensity_flops_per_byte[0], prefill.intensity_flops_per_byte))
    )
    high = 10 ** math.ceil(
        math.log10(3 * max(ridge, prefill.intensity_flops_per_byte, *series.intensity_flops_per_byte))
    )
    traces = [_roof(evaluation, dtype, low, high) for dtype in _roof_order(evaluation)]
    other = evaluation.deployment.prompt_side.accelerator
    if other is not accelerator:
        traces.append(_prefill_roof(other, compute, low, high))
    traces += [_path(series), _point("Prefill", "prefill", "diamond", prefill)]
    traces.append(_point(f"Decode at {evaluation.measures.memory.running_sequences:,}", "decode", "circle", decode))
    bottom = 10 ** math.floor(math.log10(min(series.flops_per_s[0], low * accelerator.bandwidth_bytes_per_s)))
    top = 10 ** math.ceil(math.log10(max(accelerator.peak(compute), other.peak(compute)) * 1.5))
    figure = {
        "data": traces,
        "layout": layout(
            420,
            xaxis=log_axis("Arithmetic intensity, FLOP/B", low, high),
            yaxis=log_axis("Arithmetic, FLOP/s", bottom, top),
            shapes=[
                vertical(ridge, "ridge", "dot"),
                zone(low, ridge, "memoryzone"),
                zone(ridge, high, "computezone"),
            ],
            annotations=_labels(evaluation, series, ridge, low, high, bottom, top),
        ),
    }
    rows = [
        (name, cost.intensity_flops_per_byte, cost.flops / cost.ceiling_s, cost.flops, cost.bytes, cost.bound.value)
        for name, cost in (("prefill", prefill), ("decode", decode))
    ]
    rows += [(f"decode at batch {int(b):,}", i, f, f * s, f * s / i, "") for b, i, f, s in _marked(series)]
    columns = ("work", "intensity (FLOP/B)", "arithmetic (FLOP/s)", "FLOP", "bytes (B)", "bound")
    return Chart(
        "roofline",
        "Roofline",
        "What stops each phase: moving bytes, or arithmetic?",
        _summary(prefill, decode, ridge),
        figure,
        table_of(columns, rows),
    )


def _roof_order(evaluation: Evaluation) -> list[Dtype]:
    compute = evaluation.deployment.precision.compute
    others = [dtype for dtype in evaluation.deployment.accelerator.peak_flops_per_s if dtype is not compute]
    return [compute, *others]


def _roof(evaluation: Evaluation, dtype: Dtype, low: float, high: float) -> dict[str, Any]:
    accelerator = evaluation.deployment.accelerator
    peak, bandwidth = accelerator.peak(dtype), accelerator.bandwidth_bytes_per_s
    selected = dtype is evaluation.deployment.precision.compute
    xs = [low, peak / bandwidth, high]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{dtype} roof",
        "x": xs,
        "y": [float(attainable_flops_per_s(x, peak, bandwidth)) for x in xs],
        "line": {"color": "@roof", "width": 2.5 if selected else 1.5, "dash": "solid" if selected else "dash"},
        "visible": True if selected else "legendonly",
        "hovertemplate": f"{dtype} roof: {quantity(peak, 'FLOP/s', 4)}, {quantity(bandwidth, 'B/s', 4)}<extra></extra>",
    }


def _prefill_roof(card: Accelerator, compute: Dtype, low: float, high: float) -> dict[str, Any]:
    """The roof over prefill, where it is run on cards of another kind."""
    peak, bandwidth = card.peak(compute), card.bandwidth_bytes_per_s
    xs = [low, peak / bandwidth, high]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{plain(card.name)}, which prefills",
        "x": xs,
        "y": [float(attainable_flops_per_s(x, peak, bandwidth)) for x in xs],
        "line": {"color": "@prefill", "width": 2, "dash": "dashdot"},
        "hovertemplate": f"over prefill: {quantity(peak, 'FLOP/s', 4)}, {quantity(bandwidth, 'B/s', 4)}<extra></extra>",
    }


def _path(series: BatchSeries) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "Decode by batch",
        "x": series.intensity_flops_per_byte.tolist(),
        "y": series.flops_per_s.tolist(),
        "customdata": series.batch.tolist(),
        "line": {"color": "@path", "width": 7},
        "marker": {"color": "@decode", "size": [7 if batch in LANDMARKS else 0 for batch in series.batch]},
        "hovertemplate": "batch %{customdata:,}: %{x:.3s} FLOP/B, %{y:.3s}FLOP/s<extra></extra>",
    }


def _point(name: str, role: str, symbol: str, cost: PhaseCost) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [cost.intensity_flops_per_byte],
        "y": [cost.flops / cost.ceiling_s],
        "marker": {"color": f"@{role}", "size": 13, "symbol": symbol, "line": {"color": "@surface", "width": 2}},
        "hovertemplate": f"{name}: %{{x:.4s}} FLOP/B, at best %{{y:.4s}}FLOP/s<extra></extra>",
    }


def _labels(
    evaluation: Evaluation, series: BatchSeries, ridge: float, low: float, high: float, bottom: float, top: float
) -> list[dict[str, Any]]:
    # On a logarithmic axis an annotation's coordinate is the exponent.
    def at(text: str, x: float, y: float, **more: Any) -> dict[str, Any]:
        return note(text, math.log10(x), math.log10(y), **more)

    name = plain(evaluation.deployment.accelerator.name)
    floor = bottom * (top / bottom) ** 0.04
    labels = [
        at(f"ridge {significant(ridge, 4)} FLOP/B", ridge, floor, xanchor="left", xshift=4),
        at("bound by memory", low * (ridge / low) ** 0.5, floor),
        at("bound by arithmetic", ridge * (high / ridge) ** 0.55, floor * (top / bottom) ** 0.07),
        at(name, low * (high / low) ** 0.02, top / (top / bottom) ** 0.04, xanchor="left"),
    ]
    last = 0.0
    for b, intensity, flops, _ in _marked(series):
        if flops > 3 * last:  # closer ones would stand on each other
            labels.append(
                at(f"batch {int(b):,}", intensity, flops, yshift=-13, xshift=6, xanchor="left", bgcolor="@clear")
            )
            last = flops
    return labels


def _marked(series: BatchSeries) -> list[tuple[float, float, float, float]]:
    """Batch, intensity, arithmetic and step time at the landmarks of the path."""
    columns = (series.batch, series.intensity_flops_per_byte, series.flops_per_s, series.step_s)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [(batch, intensity, flops, step) for batch, intensity, flops, step in rows if batch in LANDMARKS]


def _summary(prefill: PhaseCost, decode: PhaseCost, ridge: float) -> str:
    def side(cost: PhaseCost) -> str:
        roof = ROOF_WORDS[cost.bound]
        return f"{significant(cost.intensity_flops_per_byte, 3)} FLOP/B, bound by {roof}"

    return f"Prefill: {side(prefill)}. Decode: {side(decode)}. The ridge is at {significant(ridge, 4)} FLOP/B."
