"""What a chart is: a figure as plain data, one computed sentence, and the table behind it.

Colours are roles ("@decode"): the browser puts in the colour of the theme, so one figure serves light, dark and print.

Decode over a growing batch: the numbers that two charts draw, from the same formulas as the evaluation.

User text on its way into a figure.

Plotly reads a few tags, `%{…}` templates and `$…$` in titles, names, labels and hover text; a name must stay a name.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.calc.accelerator import step_weight_bytes
from app.calc.evaluate import Evaluation
from app.calc.time.expected.timing import step_time
from app.calc.time.operators import decode_operators
from app.calc.time.phase import ceiling_s
from app.calc.time.rule_of_thumb import decode_step_s, ridge_batch, rule_inputs

_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
LARGEST_PREFIX = 1e15
"""From here on Plotly writes its own labels as powers, in superscripts."""
Figure = dict[str, Any]
Cell = str | float | int


@dataclass(frozen=True, slots=True)
class Table:
    """Raw numbers with units in the headers; the first column names the row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure with its words. `id` names it in addresses and downloads."""

    id: str
    title: str
    question: str
    summary: str
    figure: Figure
    table: Table


def layout(height: int, **more: Any) -> dict[str, Any]:
    """The layout all figures share: quiet grid, room for labels, a legend above, no drag on touch."""
    base: dict[str, Any] = {
        "height": height,
        "margin": {"l": 64, "r": 20, "t": 34, "b": 48},
        "paper_bgcolor": "@clear",
        "plot_bgcolor": "@clear",
        "font": {"color": "@ink", "size": 12},
        "hoverlabel": {"bgcolor": "@surface", "bordercolor": "@grid", "font": {"color": "@ink"}},
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.0, "yanchor": "bottom", "font": {"size": 12}},
        "dragmode": False,
        "uirevision": "keep",
    }
    return base | more


def legend_above() -> dict[str, Any]:
    """A legend above stacked bars, in the order in which they are piled up."""
    return {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "y": 1.02,
        "yanchor": "bottom",
        "traceorder": "normal",
    }


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis with its unit in the title."""
    return {
        "title": {"text": title, "standoff": 8, "font": {"color": "@muted", "size": 12}},
        "gridcolor": "@grid",
        "linecolor": "@axis",
        "tickcolor": "@axis",
        "tickfont": {"color": "@muted"},
        "zeroline": False,
        "automargin": True,
    } | more


def log_axis(title: str, low: float, high: float, **more: Any) -> dict[str, Any]:
    """A logarithmic axis from `low` to `high`, with a label at each decade.

    The labels are given, because Plotly's own for large powers are superscripts, which it styles inline.
    """
    values = _ticks(low, high)
    return axis(
        title,
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickmode="array",
        tickvals=values,
        ticktext=[_tick(value) for value in values],
        **more,
    )


def linear_axis(title: str, highest: float, **more: Any) -> dict[str, Any]:
    """A linear axis; its labels are plain text too, whatever its numbers grow to."""
    return axis(title, exponentformat="SI" if highest < LARGEST_PREFIX else "e", **more)


def _ticks(low: float, high: float) -> list[float]:
    """The decades of a range; its 1, 2, 5 where there are too few; its ends where even those are missing."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    decades = [10.0**e for e in range(first, last + 1, max(1, (last - first) // 9))]
    if len(decades) > 1:
        return decades
    finer = [m * 10.0**e for e in range(first - 1, last + 1) for m in (1, 2, 5) if low <= m * 10.0**e <= high]
    return finer or [low, high]


def _tick(value: float) -> str:
    """A tick with its SI prefix: 0.1, 10, 1k, 100T."""
    exponent = math.floor(math.log10(value) + 1e-9)
    if exponent < -4:
        return f"{value:.2g}"
    if exponent < 0:
        return f"{value:.{2 - exponent}f}".rstrip("0")
    thousands = min(exponent // 3, len(_PREFIXES) - 1)
    return f"{value / 10.0 ** (3 * thousands):.3g}{_PREFIXES[thousands]}"


def note(text: str, x: float, y: float, **more: Any) -> dict[str, Any]:
    """A label inside the plot, at data coordinates."""
    return {
        "text": text,
        "x": x,
        "y": y,
        "showarrow": False,
        "font": {"color": "@muted", "size": 11},
        "bgcolor": "@veil",
    } | more


def vertical(x: float, role: str, dash: str = "dash", **more: Any) -> dict[str, Any]:
    """A line from bottom to top of the plot."""
    return {
        "type": "line",
        "x0": x,
        "x1": x,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"color": f"@{role}", "width": 1.5, "dash": dash},
        "layer": "below",
    } | more


def zone(x0: float, x1: float, role: str) -> dict[str, Any]:
    """A shaded part of the plot, from bottom to top."""
    return {
        "type": "rect",
        "x0": x0,
        "x1": x1,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "fillcolor": f"@{role}",
        "line": {"width": 0},
        "layer": "below",
    }


def table_of(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
    """A table from any sequences."""
    return Table(tuple(columns), tuple(tuple(row) for row in rows))


def roles_of(figure: Any) -> set[str]:
    """Every colour role that a figure uses."""
    if isinstance(figure, str):
        return {figure[1:]} if figure.startswith("@") else set()
    if isinstance(figure, Mapping):
        return set().union(*(roles_of(value) for value in figure.values())) if figure else set()
    if isinstance(figure, (list, tuple)):
        return set().union(*(roles_of(value) for value in figure)) if figure else set()
    return set()


Values = NDArray[np.float64]
LEAST_TOP = 1024
LANDMARKS = (1, 16, 256, 4096, 65_536)


@dataclass(frozen=True, slots=True)
class BatchSeries:
    """One decode step by batch: ceilings at mid-answer, and the rule of thumb that reads weights alone.

    `expected_step_s` is what a server takes; None where nothing is calibrated.
    """

    batch: Values
    step_s: Values
    intensity_flops_per_byte: Values
    flops_per_s: Values
    weights_only_step_s: Values
    expected_step_s: Values | None
    ridge_batch: float
    tokens_per_step: float = 1.0

    @property
    def tpot_s(self) -> Values:
        """Seconds of a token: of a step, where a step gives one."""
        return self.step_s / self.tokens_per_step

    @property
    def expected_tpot_s(self) -> Values | None:
        """The same on a server."""
        return None if self.expected_step_s is None else self.expected_step_s / self.tokens_per_step


def batch_series(evaluation: Evaluation, count: int = 33) -> BatchSeries:
    """`count` batches, evenly apart on a log scale, past the largest that matters: ridge, capacity or the one asked."""
    deployment, held = evaluation.deployment, evaluation.measures.memory
    accelerator, inputs = deployment.accelerator, rule_inputs(deployment, held.running_sequences)
    params, peak, bandwidth = inputs.n_params, inputs.peak_flops_per_s, inputs.bandwidth_bytes_per_s
    ridge = ridge_batch(deployment)
    top = max(LEAST_TOP, 2 * held.max_concurrency, 2 * held.running_sequences, min(2 * ridge, 1e5))
    batch = np.unique(np.rint(np.geomspace(1, top, count)))
    landmarks = [mark for mark in LANDMARKS if mark < top]
    batch = np.unique(np.concatenate([batch, landmarks, [held.running_sequences]])).astype(float)

    operators = decode_operators(deployment, batch, deployment.workload.mid_answer_tokens)
    step = np.asarray(ceiling_s(operators, accelerator), dtype=float)
    flops = np.sum([np.broadcast_to(op.flops, batch.shape) for op in operators], axis=0)
    moved = np.sum([np.broadcast_to(op.bytes, batch.shape) for op in operators], axis=0)
    read = step_weight_bytes(deployment.architecture, deployment.precision.weights, batch)
    alone = decode_step_s(read, params, batch, peak, bandwidth)
    weights_only = np.asarray(alone, dtype=float)
    return BatchSeries(
        batch,
        step,
        flops / moved,
        flops / step,
        weights_only,
        _expected(evaluation, batch),
        ridge,
        deployment.tokens_per_step,
    )


def _expected(evaluation: Evaluation, batch: Values) -> Values | None:
    expected, deployment = evaluation.measures.expected, evaluation.deployment
    if expected is None:
        return None
    step = step_time(deployment, expected.efficiency, batch, deployment.workload.mid_answer_tokens)
    return np.asarray(step.total_s, dtype=float)


_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "$": "&#36;", "%": "&#37;", "@": "&#64;"}
)
MOST_CHARACTERS = 60


def plain(text: str) -> str:
    """`text` as a literal, cut to a length that fits a label."""
    cut = text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
    return cut.translate(_ESCAPES)
