"""Bars of the optimizations: what each says of its variants, found by the keys of their columns."""

from collections.abc import Sequence
from typing import Any

from app.calc.evaluate import Evaluation
from app.calc.optimize.optimization import Row, Variants
from app.calc.quantity import quantity, significant
from app.web.figure import Cell, layout, legend_above, linear_axis, plain

HEIGHT_PX = 380
HERE = "this scenario"
Numbers = list[float | None]
Drawn = tuple[dict[str, Any], Sequence[str], Sequence[Sequence[Cell]], str]
"""A figure, the headings and the cells of its table, and its sentence."""
NAMES = {"automargin": True, "tickfont": {"color": "@ink"}, "fixedrange": True}
DOWNWARDS = {**NAMES, "autorange": "reversed"}


def name_of(row: Row) -> str:
    """The row's name, with a sign at the scenario's own that is not a colour."""
    return f"{row.label} ({HERE})" if row.is_here else row.label


def names_of(rows: Sequence[Row]) -> list[str]:
    """In two lines where a name says more, so that bars keep their width on a telephone."""
    return [name_of(row).replace(" (", "<br>(") for row in rows]


def _zeroed(variants: Variants, *keys: str) -> list[list[float]]:
    return [[value or 0.0 for value in variants.numbers(key)] for key in keys]


def cells_of(rows: Sequence[Row], *columns: Sequence[float | None], notes: bool = True) -> list[tuple[Cell, ...]]:
    """The rows of a table: name, a number a column, and the note; empty where a number is not known."""
    return [
        (name_of(row), *("" if (v := column[at]) is None else v or 0.0 for column in columns), *([row.note] * notes))
        for at, row in enumerate(rows)
    ]


def _bars(
    name: str,
    role: str | list[str],
    names: Sequence[str],
    values: Sequence[float | None],
    texts: Sequence[str],
    hover: str,
    *,
    upright: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """Bars of one series; lying unless `upright`. `role` is a colour of the theme, for all or for each."""
    colour = f"@{role}" if isinstance(role, str) else [f"@{each}" for each in role]
    return {
        "type": "bar",
        "name": name,
        **({"x": names, "y": values} if upright else {"x": values, "y": names, "orientation": "h"}),
        "customdata": texts,
        "marker": {"color": colour, "line": {"color": "@surface", "width": 1}},
        "hovertemplate": f"{hover}<extra></extra>",
    } | more


def quantization_bars(variants: Variants, evaluation: Evaluation, binary: bool) -> Drawn:
    """Grouped bars, 16 bits everywhere being 100 %; the first of the variants is the yardstick."""
    rows, names = variants.rows, names_of(variants.rows)
    series = [
        (name, role, unit, variants.numbers(key))
        for key, name, role, unit in (
            ("weights", "Weights", "weights", "B"),
            ("read_bytes", "Read in a step", "ffn", "B"),
            ("tpot_ceiling", "TPOT, ceiling", "roof", "s"),
            ("tpot_expected", "TPOT, expected", "decode", "s"),
        )
    ]
    series = [one for one in series if one[-1][0]]
    shares = [[None if v is None else 100 * v / (values[0] or 1.0) for v in values] for *_, values in series]
    data = [
        _bars(
            name,
            role,
            names,
            share,
            ["" if value is None else quantity(value, unit, 3) for value in values],
            f"{name}: %{{customdata}}, %{{x:.3~g}} % of 16 bits",
        )
        for (name, role, unit, values), share in zip(series, shares, strict=True)
    ]
    figure = {
        "data": data,
        "layout": layout(
            max(HEIGHT_PX, 130 + 64 * len(rows)),
            barmode="group",
            bargap=0.3,
            xaxis=linear_axis(
                "Share of 16 bits, %", max(v or 0.0 for share in shares for v in share), rangemode="tozero"
            ),
            yaxis=DOWNWARDS,
            legend=legend_above(),
            margin={"l": 90, "r": 20, "t": 72, "b": 48},
        ),
    }
    headings = ("format", *(f"{name} ({unit})" for name, _, unit, _ in series), "note")
    (read,), timed = _zeroed(variants, "read_bytes"), variants.numbers("tpot_expected")
    if timed[0] is None:
        timed = variants.numbers("tpot_ceiling")
    at = min(range(len(read)), key=read.__getitem__)
    took, first = timed[at], timed[0]
    text = (
        f"{rows[at].label} reads least: {quantity(read[at], 'B', 3, binary=binary)} in a step of "
        f"{evaluation.deployment.architecture.name}, {significant(100 * read[at] / read[0], 3)} % of 16 bits"
    )
    if took is not None and first:
        text += f"; a token takes {quantity(took, 's', 3)}, {significant(100 * took / first, 3)} %"
    return figure, headings, cells_of(rows, *(values for *_, values in series)), f"{text}."


def paging_bars(variants: Variants, evaluation: Evaluation, binary: bool) -> Drawn:
    """A bar of 100 % for each way to set memory aside: tokens, and what stays empty."""
    rows, names = variants.rows, names_of(variants.rows)
    aside, used, room = _zeroed(variants, "set_aside", "used_share", "capacity")
    empty = [100.0 - share for share in used]
    held = [f"{significant(share, 3)} % used" for share in used]
    unused = [f"{significant(e, 3)} % empty, room for {r:,.0f}" for e, r in zip(empty, room, strict=True)]
    figure = {
        "data": [
            _bars("Holds tokens", "decode", names, used, held, "%{y}: %{customdata}"),
            _bars("Set aside and empty", "outside", names, empty, unused, "%{y}: %{customdata}"),
        ],
        "layout": layout(
            HEIGHT_PX,
            barmode="stack",
            bargap=0.4,
            xaxis=linear_axis("Share of a sequence’s room, %", 100.0, range=[0, 100.0]),
            yaxis=DOWNWARDS,
            legend=legend_above(),
            margin={"l": 120, "r": 20, "t": 48, "b": 48},
        ),
    }
    most, least = (find(range(len(rows)), key=used.__getitem__) for find in (max, min))
    summary = (
        f"Of {evaluation.deployment.architecture.name}’s cache {significant(used[most], 3)} % holds tokens as "
        f"{rows[most].label}, and {significant(used[least], 3)} % with {rows[least].label}; "
        f"{room[most]:,.0f} and {room[least]:,.0f} sequences find room."
    )
    headings = ("room", "set aside (tokens)", "holds tokens (%)", "empty (%)", "find room (sequences)", "note")
    return figure, headings, cells_of(rows, aside, used, empty, room), summary


def batching_bars(variants: Variants, evaluation: Evaluation, binary: bool) -> Drawn:
    """Two bars a spread: static batches, with the share of places that idle, and places filled as they fall free."""
    rows = variants.rows
    longest, idle, static, continuous, gain = columns = _zeroed(
        variants, "longest", "idle_share", "static", "continuous", "gain"
    )
    shares = [f"{significant(share, 3)} % idle" for share in idle]
    names = [f"{name}<br>{share}" for name, share in zip(names_of(rows), shares, strict=True)]
    hover = ": %{y:,.4~g} tokens/s, %{customdata}"
    gains = [f"{significant(g, 3)} times static" for g in gain]
    figure = {
        "data": [
            _bars("Static", "outside", names, static, shares, f"Static{hover}", upright=True),
            _bars("Continuous", "decode", names, continuous, gains, f"Continuous{hover}", upright=True),
        ],
        "layout": layout(
            HEIGHT_PX,
            barmode="group",
            bargap=0.3,
            xaxis=NAMES,
            yaxis=linear_axis("Output tokens a second", max(*static, *continuous), rangemode="tozero"),
            legend=legend_above(),
            margin={"l": 64, "r": 20, "t": 48, "b": 72},
        ),
    }
    at, users = max(range(len(rows)), key=gain.__getitem__), evaluation.measures.memory.served_sequences
    summary = (
        f"With {rows[at].label} lengths the longest of a static batch of {users:,} has {significant(longest[at], 3)} "
        f"tokens and {significant(idle[at], 3)} % of its places idle: filling them gives {significant(gain[at], 3)} "
        "times the tokens a second."
    )
    if gain[at] <= 1:
        summary = (
            f"With {users:,} at a time nothing is gained by filling places as they fall free, however long answers are."
        )
    units = ("longest of a batch (tokens)", "places idle (%)", "static (tokens/s)", "continuous (tokens/s)")
    return figure, ("answers", *units, "gain (times)"), cells_of(rows, *columns, notes=False), summary


def prefix_caching_bars(variants: Variants, evaluation: Evaluation, binary: bool) -> Drawn:
    """A bar of TTFT and a bar of capacity for each preset."""
    rows, names = variants.rows, names_of(variants.rows)
    found, shared, ttft, room = (variants.numbers(k) for k in ("found_share", "shared_tokens", "ttft", "capacity"))
    first_ms = [None if value is None else 1e3 * value for value in ttft]
    times, places = [quantity(v or 0.0, "s", 3) for v in ttft], [f"{v or 0:,.0f} sequences" for v in room]
    figure = {
        "data": [
            _bars(
                "First token",
                "prefill",
                names,
                first_ms,
                times,
                "%{y}, first token: %{customdata}",
                xaxis="x",
                yaxis="y",
            ),
            _bars("Room", "cache", names, room, places, "%{y}, room: %{customdata}", xaxis="x2", yaxis="y2"),
        ],
        "layout": layout(
            460,
            bargap=0.35,
            showlegend=False,
            xaxis=_from_zero("Time to first token, ms", first_ms, anchor="y"),
            xaxis2=_from_zero("Sequences that find room", room, anchor="y2"),
            yaxis={**DOWNWARDS, "domain": [0.6, 1]},
            yaxis2={**DOWNWARDS, "domain": [0, 0.4]},
            margin={"l": 130, "r": 20, "t": 16, "b": 48},
        ),
    }
    name = evaluation.deployment.architecture.name
    summary = f"No first token of {name} is told here: nothing keeps up with them."
    known = [(row.label, t, r or 0.0) for row, t, r in zip(rows, ttft, room, strict=True) if t is not None]
    if known:
        first, quickest = known[0], min(known, key=lambda entry: entry[1])
        summary = (
            f"With {first[0]} a first token takes {quantity(first[1], 's', 3)} and {first[2]:,.0f} sequences find room"
            f"; with {quickest[0]} in common, {quantity(quickest[1], 's', 3)} and {quickest[2]:,.0f}."
        )
    headings = ("prompts", "found (% of the prompt)", "shared by all (tokens)", "time to first token (s)")
    return figure, (*headings, "find room (sequences)", "note"), cells_of(rows, found, shared, ttft, room), summary


def _from_zero(title: str, values: Numbers, **more: Any) -> dict[str, Any]:
    return linear_axis(title, max((value or 0.0 for value in values), default=1.0), rangemode="tozero", **more)


def disaggregation_bars(variants: Variants, evaluation: Evaluation, binary: bool) -> Drawn:
    """Three panels over the ratios of prefill to decode: what each GPU yields, and the two times of a user."""
    rows, names, data, axes = variants.rows, names_of(variants.rows), [], {}
    for key, name, axis, title, role, domain, unit, scale in (
        ("throughput_per_gpu", "For each GPU", "", "Tokens/s a GPU", "decode", [0.72, 1.0], "tokens/s", 1.0),
        ("ttft", "TTFT", "2", "TTFT, ms", "prefill", [0.36, 0.64], "s", 1e3),
        ("tpot", "TPOT", "3", "TPOT, ms", "cache", [0.0, 0.28], "s", 1e3),
    ):
        values = variants.numbers(key)
        drawn = [None if value is None else scale * value for value in values]
        texts, roles = [quantity(v or 0.0, unit, 3) for v in values], ["outside", *[role] * (len(rows) - 1)]
        hover = f"%{{x}}, {name}: %{{customdata}}"
        data.append(_bars(name, roles, names, drawn, texts, hover, upright=True, yaxis=f"y{axis}"))
        axes[f"yaxis{axis}"] = _from_zero(title, drawn, domain=domain)
    figure = {
        "data": data,
        "layout": layout(
            520,
            bargap=0.4,
            showlegend=False,
            xaxis={**NAMES, "anchor": "y3"},
            margin={"l": 72, "r": 20, "t": 16, "b": 48},
            **axes,
        ),
    }
    headings = ("ratio", *(f"{column.label.lower()} ({column.unit})" for column in variants.columns))
    cells = cells_of(rows, *(variants.numbers(column.key) for column in variants.columns), notes=False)
    (each,), name = _zeroed(variants, "throughput_per_gpu"), evaluation.deployment.architecture.name
    best = max(range(1, len(rows)), key=each.__getitem__, default=0)
    summary = f"{rows[0].label} serve {name} with {significant(each[0], 3)} tokens/s of each GPU."
    if best and each[0]:
        summary = (
            f"Of the ratios {rows[best].label} yields most of each GPU: {significant(each[best], 3)} tokens/s of {name}"
            f", {significant(each[best] / each[0], 3)} times the {significant(each[0], 3)} of the same GPUs together."
        )
    return figure, headings, cells, summary


def newer_card_bars(variants: Variants, evaluation: Evaluation, binary: bool) -> Drawn:
    """A bar of throughput an accelerator, and a mark where its bandwidth would put it."""
    rows, here = variants.rows, [row.is_here for row in variants.rows].index(True)
    names = [f"{plain(row.label)} (here)" if row.is_here else plain(row.label) for row in rows]
    names = [name.replace(" (", "<br>(", 1) for name in names]
    columns = _zeroed(variants, "throughput", "bandwidth")
    rates, bandwidths = ([value / values[here] for value in values] for values in columns)
    hover = ": %{customdata}, %{x:.3~g} times here"
    texts = [[quantity(v, unit, 3) for v in values] for values, unit in zip(columns, ("tokens/s", "B/s"), strict=True)]
    roles = ["decode" if row.is_here else "cache" for row in rows]
    marks = {
        "type": "scatter",
        "mode": "markers",
        "name": "Bandwidth",
        "x": bandwidths,
        "y": names,
        "customdata": texts[1],
        "marker": {"color": "@roof", "size": 11, "symbol": "diamond-open", "line": {"color": "@roof", "width": 2}},
        "hovertemplate": f"Bandwidth{hover}<extra></extra>",
    }
    figure = {
        "data": [_bars("Throughput", roles, names, rates, texts[0], f"Throughput{hover}"), marks],
        "layout": layout(
            max(HEIGHT_PX, 130 + 38 * len(rows)),
            bargap=0.35,
            xaxis=linear_axis("Times this card", max(*rates, *bandwidths), rangemode="tozero"),
            yaxis=DOWNWARDS,
            legend=legend_above(),
            margin={"l": 110, "r": 20, "t": 48, "b": 48},
        ),
    }
    headings = ("card", "throughput (tokens/s)", "bandwidth (B/s)", "throughput, times here", "bandwidth, times here")
    best = max((at for at in range(len(rows)) if at != here), key=rates.__getitem__, default=here)
    summary = (
        f"{rows[best].label} has {significant(bandwidths[best], 3)} times the bandwidth of {rows[here].label} and "
        f"serves {evaluation.deployment.architecture.name} with {significant(rates[best], 3)} times its throughput."
    )
    return figure, (*headings, "note"), cells_of(rows, *columns, rates, bandwidths), summary
