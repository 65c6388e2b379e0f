"""Predicted against measured as points: each measurement once, where its numbers say, inside the axes."""

import math
import re

import plotly.graph_objects as go
import pytest

from app.catalog.measurements import Metric
from app.checkpoint.text import dumps
from app.features.validation.chart import HEIGHT, validation_charts
from app.features.validation.compared import METRICS, RATES, Compared
from app.settings import ROOT
from app.web.figure import Chart, roles_of
from tests.factories import compared_rows
from tests.features.workbench.charts.cases import leaves, traces
from tests.features.workbench.charts.test_figures import TAG, painted

ROWS = compared_rows()
SETS: dict[str, list[Compared]] = {
    "all": list(ROWS),
    "one": [ROWS[0]],
    "exact": [row for row in ROWS if row.factor < 1.001][:1] or [ROWS[-1]],
    "not counted": [row for row in ROWS if not row.is_scored],
    **{metric.value: [row for row in ROWS if row.measurement.metric is metric] for metric in Metric},
}
DRAWN = [(name, chart) for name, rows in SETS.items() for chart in validation_charts(rows)]
EACH = pytest.mark.parametrize("chart", [c for _, c in DRAWN], ids=[f"{name} {c.id}" for name, c in DRAWN])


def points(chart: Chart) -> list[tuple[float, float]]:
    drawn = [trace for trace in chart.figure["data"] if trace["mode"] == "markers"]
    return [pair for trace in drawn for pair in zip(trace["x"], trace["y"], strict=True)]


@pytest.mark.parametrize("name", SETS)
def test_each_measurement_is_a_point_where_its_numbers_say(name: str) -> None:
    expected = sorted((row.measured, row.held_out) for row in SETS[name])
    found = sorted(pair for chart in validation_charts(SETS[name]) for pair in points(chart))
    assert found == [pytest.approx(pair, rel=1e-4) for pair in expected]


def test_times_and_rates_do_not_share_axes() -> None:
    times, rates = validation_charts(ROWS)
    assert (times.id, rates.id) == ("predicted-times", "predicted-rates")
    named = {trace["name"] for trace in times.figure["data"]}
    assert {METRICS[Metric.TTFT], METRICS[Metric.TPOT]} <= named
    assert not named & {METRICS[metric] for metric in RATES}
    assert [chart.id for chart in validation_charts(SETS["ttft_s"])] == ["predicted-times"]
    assert validation_charts([]) == []


@EACH
def test_plotly_takes_it_and_nothing_in_it_styles_inline(chart: Chart) -> None:
    assert len(go.Figure(painted(chart.figure)).data) == len(chart.figure["data"])
    assert {trace["type"] for trace in chart.figure["data"]} == {"scatter"}
    dumps(chart.figure)
    for value in leaves(chart.figure):
        assert not (isinstance(value, str) and TAG.search(value)), value


@EACH
def test_everything_stands_inside_the_axes(chart: Chart) -> None:
    for letter in "xy":
        axis = chart.figure["layout"][f"{letter}axis"]
        low, high = axis["range"]
        assert axis["tickvals"]
        values = [value for trace in chart.figure["data"] for value in trace[letter] if value is not None]
        assert all(low - 1e-9 <= math.log10(value) <= high + 1e-9 for value in values)


@EACH
@pytest.mark.parametrize(("name", "factors"), [("as measured", {1}), ("± 20 %", {0.8, 1.2}), ("factor 2", {0.5, 2})])
def test_a_guide_is_where_its_name_says(chart: Chart, name: str, factors: set[float]) -> None:
    (line,) = traces(chart.figure, name)
    pairs = [(x, y) for x, y in zip(line["x"], line["y"], strict=True) if x is not None]
    assert {round(y / x, 9) for x, y in pairs} == factors


def test_hover_says_which_row_it_is() -> None:
    row = SETS["ttft_s"][0]
    (times,) = validation_charts([row])
    (text,) = times.figure["data"][-1]["text"]
    for part in (row.model, row.accelerator, row.engine, "measured", "predicted"):
        assert part.replace("@", "&#64;") in text


@EACH
def test_the_table_counts_every_point(chart: Chart) -> None:
    assert sum(int(row[1]) for row in chart.table.rows) == len(points(chart))
    assert all(len(row) == len(chart.table.columns) for row in chart.table.rows)
    assert chart.summary.endswith(".")
    assert chart.question.endswith("?")


def test_its_roles_have_tokens_and_its_place_has_a_height() -> None:
    tokens = set(re.findall(r"--chart-([a-z]+):", (ROOT / "static/css/base.css").read_text(encoding="utf-8")))
    assert all(roles_of(chart.figure) <= tokens for _, chart in DRAWN)
    sheet = (ROOT / "static/css/validation.css").read_text(encoding="utf-8")
    assert f".plot-predicted-times, .plot-predicted-rates {{ min-height: {HEIGHT}px; }}" in sheet
