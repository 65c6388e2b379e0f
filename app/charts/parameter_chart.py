"""Where a model's parameters sit: one bar a group, the largest on top."""

from collections.abc import Mapping
from typing import Any

from app.calc.layers.parts import WeightGroup
from app.calc.parameters import ParameterCounts
from app.charts.figure import Chart, axis, layout, linear_axis, table_of

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
