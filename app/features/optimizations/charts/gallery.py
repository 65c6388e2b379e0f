"""The chart of each optimization, and those that are points: kinds of attention, and ways to split a model."""

from collections.abc import Callable, Mapping
from itertools import cycle
from typing import Any

from app.calc.evaluate import Evaluation
from app.calc.optimize.optimization import Optimization, Variants
from app.calc.quantity import quantity, significant
from app.features.optimizations.charts import bars
from app.features.optimizations.charts.bars import DOWNWARDS, HEIGHT_PX, Drawn, cells_of, name_of, names_of
from app.features.optimizations.charts.curves import chunked_prefill_drawing, speculative_drawing
from app.web.figure import Chart, layout, legend_above, linear_axis, log_axis, table_of

PREFIX = "door-"
"""What the ids of these charts start with: they stand in addresses of downloads."""


def optimization_chart(found: Optimization, evaluation: Evaluation, *, binary: bool = False) -> Chart:
    """The chart of one optimization, its sizes in GiB where `binary`; without marks where it is refused."""
    title, question, draw = _DRAWN[found.id]
    if found.refused is not None or found.variants is None:
        reason = found.refused or "There is nothing to compare."
        drawn: Drawn = {"data": [], "layout": layout(HEIGHT_PX)}, ("not told",), ((reason,),), reason
    else:
        drawn = draw(found.variants, evaluation, binary)
    figure, headings, cells, summary = drawn
    return Chart(f"{PREFIX}{found.id}", title, question, summary, figure, table_of(headings, cells))


def _attention(variants: Variants, evaluation: Evaluation, binary: bool) -> Drawn:
    """A point a kind on a log scale, the capacity beside it; kinds that are refused have none."""
    rows, kept, rooms = variants.rows, variants.numbers("token"), variants.numbers("capacity")
    points = [(row, size, room) for row, size, room in zip(rows, kept, rooms, strict=True) if size]
    sizes = [size for _, size, _ in points]
    low, high = min(sizes, default=1.0), max(sizes, default=10.0)
    points_trace = {
        "type": "scatter",
        "mode": "markers+text",
        "name": "Cache that a token adds",
        "showlegend": False,
        "x": sizes,
        "y": names_of([row for row, *_ in points]),
        "customdata": [quantity(size, "B", 3) for size in sizes],
        "text": [f"room for {int(room or 0):,}" for *_, room in points],
        "textposition": "top center",
        "textfont": {"color": "@ink", "size": 12},
        "cliponaxis": False,
        "marker": {
            "color": ["@decode" if row.is_here else "@cache" for row, *_ in points],
            "size": 14,
            "symbol": ["diamond" if row.is_here else "circle" for row, *_ in points],
            "line": {"color": "@surface", "width": 1},
        },
        "hovertemplate": "%{customdata} a token, %{text} sequences<extra></extra>",
    }
    figure = {
        "data": [points_trace],
        "layout": layout(
            HEIGHT_PX,
            xaxis=log_axis("Cache that a token adds, B", low / 8, high * 8),
            yaxis={**DOWNWARDS, "gridcolor": "@grid"},
            margin={"l": 100, "r": 20, "t": 24, "b": 48},
        ),
    }
    headings = ("attention", "cache a token (B)", "room (sequences)", "attention in decode (FLOP/B)", "note")
    cells = cells_of(rows, kept, rooms, variants.numbers("intensity"))
    if not points:
        return figure, headings, cells, "No layer keeps a row for each token."

    def said(size: float) -> str:
        return quantity(size, "B", 3, binary=binary)

    most, least = max(points, key=lambda point: point[1]), min(points, key=lambda point: point[1])
    text = (
        f"A token of {evaluation.deployment.architecture.name} would keep {said(most[1])} as {most[0].label} and "
        f"{said(least[1])} as {least[0].label}, {significant(most[1] / least[1], 3)} times less"
    )
    here = next((point for point in points if point[0].is_here), None)
    return figure, headings, cells, f"{text}; here it is {here[0].label}, {said(here[1])}." if here else f"{text}."


def _parallelism(variants: Variants, evaluation: Evaluation, binary: bool) -> Drawn:
    """A point a way to split: further right each GPU yields more, further down each user waits less."""
    rows, name = variants.rows, evaluation.deployment.architecture.name
    tpot, yields = variants.numbers("tpot"), variants.numbers("throughput_per_gpu")
    points = [
        (name_of(row), 1e3 * t, y, row.is_here)
        for row, t, y in zip(rows, tpot, yields, strict=True)
        if t is not None and y is not None
    ]
    longest, most = max((p[1] for p in points), default=1.0), max((p[2] for p in points), default=1.0)
    figure = {
        "data": [_point(*point, symbol) for point, symbol in zip(points, cycle(_SYMBOLS))],
        "layout": layout(
            HEIGHT_PX,
            legend=legend_above(),
            margin={"l": 64, "r": 20, "t": 96, "b": 48},
            xaxis=linear_axis("Output tokens a second of each GPU", most, range=[0, 1.1 * most]),
            yaxis=linear_axis("Time per output token, ms", longest, range=[0, 1.1 * longest]),
        ),
    }
    units = ("time per output token (s)", "throughput of each GPU (tokens/s)", "throughput (tokens/s)")
    summary = f"No way of using these GPUs holds {name}."
    if points:
        quick, best = min(points, key=lambda p: p[1]), max(points, key=lambda p: p[2])
        summary = (
            f"Of {len(points):,} ways to serve {name}, {quick[0]} is fastest for a user, a token in "
            f"{quantity(quick[1] / 1e3, 's', 3)}; {best[0]} yields most of each GPU, "
            f"{quantity(best[2], 'tokens/s', 3)}."
        )
    cells = cells_of(rows, tpot, yields, variants.numbers("throughput"))
    return figure, ("way", *units, "note"), cells, summary


_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "star")


def _point(label: str, time_ms: float, rate: float, is_here: bool, symbol: str) -> dict[str, Any]:
    """Ways lie close together: each has a sign of its own, named in the legend; the scenario's is filled."""
    colour, sign = "@decode" if is_here else "@cache", symbol if is_here else f"{symbol}-open"
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label,
        "x": [rate],
        "y": [time_ms],
        "marker": {"color": colour, "size": 12, "symbol": sign, "line": {"color": colour, "width": 2}},
        "hovertemplate": f"{label}: %{{y:.4~g}} ms a token, %{{x:,.4~g}} tokens/s of each GPU<extra></extra>",
    }


_DRAWN: Mapping[str, tuple[str, str, Callable[[Variants, Evaluation, bool], Drawn]]] = {
    "quantization": (
        "Bytes and time by format",
        "How much of what the bits save becomes time?",
        bars.quantization_bars,
    ),
    "attention": ("Cache of a token by kind of attention", "What does it cost to remember?", _attention),
    "paging": ("What a sequence’s room holds", "How much of what is set aside is ever used?", bars.paging_bars),
    "batching": (
        "Throughput by spread of the answers",
        "What does waiting for the longest answer cost?",
        bars.batching_bars,
    ),
    "prefix_caching": (
        "First token and room by what is shared",
        "What does a common prefix save?",
        bars.prefix_caching_bars,
    ),
    "chunked_prefill": (
        "Pause and first token by token budget",
        "How small a step is worth it?",
        chunked_prefill_drawing,
    ),
    "speculative": ("Gain of guessing by batch", "At which batch does it stop paying?", speculative_drawing),
    "disaggregation": ("Ratios of prefill to decode", "How many should prefill?", bars.disaggregation_bars),
    "parallelism": ("A token’s time against each GPU’s yield", "Which split serves whom?", _parallelism),
    "newer_card": (
        "Other cards, as multiples of this one",
        "Does twice the bandwidth give twice the tokens?",
        bars.newer_card_bars,
    ),
}
