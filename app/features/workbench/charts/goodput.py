"""Requests that meet their targets against requests offered: the knee, and what is lost beyond it."""

from typing import Any

import numpy as np

from app.calc.evaluate import Evaluation
from app.calc.quantity import quantity, significant
from app.calc.time.goodput import LIMIT_WORDS, Goodput, Load, Values
from app.web.figure import Cell, Chart, layout, linear_axis, note, table_of, vertical, zone

TITLE, QUESTION = "Goodput against offered rate", "How much may come in before promises break?"
HEIGHT_PX = 420
BEYOND = 1.25
"""How far past saturation the axis reaches."""


def goodput_chart(evaluation: Evaluation) -> Chart:
    """Good requests a second against those offered, from an idle server to a full one.

    Raises:
        ValueError: the evaluation has no goodput: no target, or nothing expected.
    """
    found = evaluation.goodput
    if found is None:
        raise ValueError("Nothing is told of a goodput.")
    load, top = _with_knee(found), BEYOND * max(found.most_per_s, float(found.load.rate_per_s.max()))
    crossings = _crossings(found)
    figure = {
        "data": [
            _all(top),
            {
                "type": "scatter",
                "mode": "lines",
                "name": "Meet the targets (expected)",
                "x": load.rate_per_s.tolist(),
                "y": load.good_per_s.tolist(),
                "line": {"color": "@overhead", "width": 3, "dash": "dot"},
                "hovertemplate": "%{x:.3~g} offered: %{y:.3~g} good requests/s<extra></extra>",
            },
            {
                "type": "scatter",
                "mode": "markers",
                "name": "Knee: the goodput",
                "x": [found.offered_per_s],
                "y": [found.rate_per_s],
                "marker": {
                    "color": "@overhead",
                    "size": 12,
                    "symbol": "diamond",
                    "line": {"color": "@surface", "width": 2},
                },
                "hovertemplate": "goodput: %{y:.3~g} of %{x:.3~g} requests/s offered<extra></extra>",
            },
        ],
        "layout": layout(
            HEIGHT_PX,
            xaxis=linear_axis("Requests offered a second", top, range=[0, top]),
            yaxis=linear_axis("Good requests a second", top, range=[0, top]),
            shapes=[
                zone(found.most_per_s, top, "overzone"),
                *(vertical(rate, role, dash) for _, rate, role, dash in crossings),
            ],
            annotations=[
                note(
                    "beyond saturation: lost",
                    top,
                    0.98,
                    yref="paper",
                    xanchor="right",
                    yanchor="top",
                    xshift=-4,
                ),
                *(
                    note(text, rate, 0.02 + 0.08 * place, yref="paper", xanchor="right", yanchor="bottom", xshift=-4)
                    for place, (text, rate, _, _) in enumerate(crossings)
                ),
            ],
            margin={"l": 64, "r": 20, "t": 56, "b": 48},
        ),
    }
    return Chart("goodput", TITLE, QUESTION, _summary(found), figure, _table(found))


def _with_knee(found: Goodput) -> Load:
    """The load with the knee among its points, which are too coarse to meet it."""
    load = found.load
    if not found.rate_per_s or found.concurrency in load.concurrency:
        return load
    at = int(np.searchsorted(load.concurrency, found.concurrency))

    def among(values: Values, value: float) -> Values:
        return np.insert(values, at, value)

    def between(values: Values) -> Values:
        return among(values, float(np.interp(found.concurrency, load.concurrency, values)))

    return Load(
        concurrency=among(load.concurrency, found.concurrency),
        rate_per_s=among(load.rate_per_s, found.offered_per_s),
        ttft_s=between(load.ttft_s),
        tpot_s=between(load.tpot_s),
        attained=among(load.attained, found.attained),
        good_per_s=among(load.good_per_s, found.rate_per_s),
    )


def _all(top: float) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "All that are offered",
        "x": [0.0, top],
        "y": [0.0, top],
        "line": {"color": "@rule", "width": 1.5, "dash": "dash"},
        "hoverinfo": "skip",
    }


def _crossings(found: Goodput) -> list[tuple[str, float, str, str]]:
    """Offered rates at which the mean first token and the time per token pass their targets."""
    load, told = found.load, []
    for name, values, target, role, dash in (
        ("mean TTFT", load.ttft_s, found.ttft_target_s, "prefill", "dashdot"),
        ("TPOT", load.tpot_s, found.tpot_target_s, "decode", "dash"),
    ):
        if target is None:
            continue
        late = np.nonzero(values > target)[0]
        if not len(late) or late[0] == 0:
            continue  # never, or from the first request on
        at = int(late[0])
        share = (target - values[at - 1]) / (values[at] - values[at - 1])
        rate = load.rate_per_s[at - 1] + share * (load.rate_per_s[at] - load.rate_per_s[at - 1])
        told.append((f"{name} passes {quantity(target, 's', 3)}", float(rate), role, dash))
    return told


def _table(found: Goodput) -> Any:
    load = _with_knee(found)
    rows: list[tuple[Cell, ...]] = [
        (f"{b:,.3g}" if b < 1000 else f"{b:,.0f}", float(rate), float(good), float(share), float(ttft), float(tpot))
        for b, rate, good, share, ttft, tpot in zip(
            load.concurrency, load.rate_per_s, load.good_per_s, load.attained, load.ttft_s, load.tpot_s, strict=True
        )
    ]
    columns = (
        "requests in the system",
        "offered (requests/s)",
        "good (requests/s)",
        "share that is good",
        "mean time to first token, expected (s)",
        "time per output token, expected (s)",
    )
    return table_of(columns, rows)


def _summary(found: Goodput) -> str:
    if not found.rate_per_s:
        return f"No rate is good: {LIMIT_WORDS[found.limiter]} even with one request in the system."
    return (
        f"At most {significant(found.rate_per_s, 3)} requests a second meet the targets, of "
        f"{significant(found.offered_per_s, 3)} offered, {significant(100 * found.attained, 3)} %; beyond that "
        f"{LIMIT_WORDS[found.limiter]}. With the room full {significant(found.most_per_s, 3)} a second pass, in "
        "time or not."
    )
