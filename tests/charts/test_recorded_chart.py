"""Recorded readings drawn: a chart for each kind of figure, values as they were kept, gaps left open."""

from datetime import UTC, datetime, timedelta

import plotly.graph_objects as go

from app.charts.recorded_chart import MOST_LINES, recorded_charts
from app.recording.figures import Series
from app.strict_json import dumps
from tests.charts.test_figures import painted

START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def line(source: str, figure: str, *values: float | None) -> Series:
    times = tuple(START + timedelta(seconds=10 * at) for at in range(len(values)))
    return Series(source, figure, "", times, values)


def test_figures_that_belong_together_share_a_chart_in_the_order_in_which_a_server_is_looked_at() -> None:
    found = recorded_charts(
        [
            line("nvidia/0", "power_draw_w", 400.0, 500.0),
            line("server-1", "ttft_p99_s", 0.2, 0.3),
            line("server-1", "ttft_p50_s", 0.1, 0.1),
            line("server-1", "output_tokens_per_s", 1000.0, 1200.0),
            line("server-1", "no_such_figure", 1.0),
            line("host", "cpu_percent", None),
        ]
    )
    assert [chart.id for chart in found] == ["recorded-tokens", "recorded-ttft", "recorded-power"]
    for chart in found:
        go.Figure(painted(chart.figure))
        dumps(chart.figure)


def test_values_are_in_the_unit_of_the_axis_and_gaps_stay_open() -> None:
    (chart,) = recorded_charts([line("server-1", "ttft_p50_s", 0.1, None, 0.3)])
    (trace,) = chart.figure["data"]
    assert trace["y"] == [100.0, None, 300.0]
    assert trace["connectgaps"] is False
    assert trace["x"][0] == "2026-11-29 12:00:00.000"
    assert chart.table.rows == (("server 1, median", 100.0, 200.0, 300.0, 300.0, "ms", "2026-11-29 12:00:20"),)
    assert chart.summary == "server 1, median: 100 to 300 ms, 200 in the mean, 300 at the end."


def test_more_lines_than_can_be_told_apart_are_in_the_table() -> None:
    (chart,) = recorded_charts([line(f"nvidia/{at}", "power_draw_w", 1.0) for at in range(MOST_LINES + 3)])
    assert len(chart.figure["data"]) == MOST_LINES
    assert len(chart.table.rows) == MOST_LINES + 3
    looks = {(trace["line"]["color"], trace["line"]["dash"]) for trace in chart.figure["data"]}
    assert len(looks) == MOST_LINES
    assert "3 more lines" in chart.summary


def test_nothing_recorded_is_no_chart() -> None:
    assert recorded_charts([]) == []


def test_what_never_changed_is_said_once_and_many_lines_have_room_for_their_names() -> None:
    (few,) = recorded_charts([line("server-1", "ttft_p50_s", 0.1, 0.1)])
    assert few.summary == "server 1, median: 100 ms all the time."
    (many,) = recorded_charts([line(f"nvidia/{at}", "power_draw_w", 1.0) for at in range(8)])
    assert many.figure["layout"]["height"] > few.figure["layout"]["height"]
