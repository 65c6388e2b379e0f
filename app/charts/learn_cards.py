"""One user's pace on the reader's card and on others: bandwidth beside the pace that it gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.notation import significant
from app.charts.figure import Chart, Table, layout, linear_axis, table_of
from app.charts.plain import plain

ROW_PX, FRAME_PX = 30, 120


@dataclass(frozen=True, slots=True)
class CardPace:
    """A card with what one user gets on as many of it as the scenario has. `holds` says that the weights find room."""

    name: str
    year: int
    pace_tokens_per_s: float
    bandwidth_bytes_per_s: float
    peak_flops_per_s: float
    compute: str
    holds: bool
    is_own: bool


def cards_chart(cards: Sequence[CardPace]) -> Chart:
    """Bars from the oldest card down to the newest; the reader's own has its colour, what is too small is hatched."""
    rows = list(reversed(cards))
    traces = [
        _bars("This card", "decode", "", [c for c in rows if c.is_own]),
        _bars("Other cards", "weights", "", [c for c in rows if not c.is_own and c.holds]),
        _bars("Too small for the weights", "outside", "/", [c for c in rows if not c.is_own and not c.holds]),
    ]
    figure = {
        "data": [trace for trace in traces if trace["x"]],
        "layout": layout(
            FRAME_PX + ROW_PX * len(rows),
            barmode="overlay",
            bargap=0.35,
            xaxis=linear_axis("One user, tokens/s", max(c.pace_tokens_per_s for c in rows), rangemode="tozero"),
            yaxis={
                "type": "category",
                "categoryorder": "array",
                "categoryarray": [plain(c.name) for c in rows],
                "automargin": True,
                "tickfont": {"color": "@ink"},
                "fixedrange": True,
            },
            margin={"l": 120, "r": 56, "t": 40, "b": 48},
        ),
    }
    return Chart(
        "cards",
        "One user on other cards",
        "What does a newer card give a single reader?",
        _summary(cards),
        figure,
        _table(cards),
    )


def _table(cards: Sequence[CardPace]) -> Table:
    table = [
        (
            f"{c.name}, this card" if c.is_own else c.name,
            c.year or "–",
            c.bandwidth_bytes_per_s,
            c.compute,
            c.peak_flops_per_s,
            c.peak_flops_per_s / c.bandwidth_bytes_per_s,
            c.pace_tokens_per_s,
            "yes" if c.holds else "no",
        )
        for c in cards
    ]
    columns = (
        "card",
        "year",
        "bandwidth (B/s)",
        "arithmetic in",
        "arithmetic (FLOP/s)",
        "ridge (FLOP/B)",
        "one user (tokens/s)",
        "holds the weights",
    )
    return table_of(columns, table)


def _bars(name: str, role: str, pattern: str, cards: Sequence[CardPace]) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": [c.pace_tokens_per_s for c in cards],
        "y": [plain(c.name) for c in cards],
        "text": [significant(c.pace_tokens_per_s, 3) for c in cards],
        "textposition": "outside",
        "cliponaxis": False,
        "textfont": {"color": "@ink"},
        "marker": {
            "color": f"@{role}",
            "line": {"color": "@surface", "width": 1},
            "pattern": {"shape": pattern, "fgcolor": "@hatch", "size": 6, "fillmode": "overlay"},
        },
        "hovertemplate": f"%{{y}}: %{{x:.4~g}} tokens/s ({name.lower()})<extra></extra>",
    }


def _summary(cards: Sequence[CardPace]) -> str:
    own = next(c for c in cards if c.is_own)
    fastest = max(cards, key=lambda c: c.pace_tokens_per_s)
    text = f"On {own.name} one user gets at most {significant(own.pace_tokens_per_s, 4)} tokens/s"
    if fastest is own:
        return f"{text}; none of the others shown gives more."
    times = significant(fastest.pace_tokens_per_s / own.pace_tokens_per_s, 3)
    bandwidth = significant(fastest.bandwidth_bytes_per_s / own.bandwidth_bytes_per_s, 3)
    return f"{text}, on {fastest.name} {times} times that, with {bandwidth} times the bandwidth."
