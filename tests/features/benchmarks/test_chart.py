"""A benchmark over its prediction as a figure: measured, expected and ceiling told apart, and all where they belong."""

import dataclasses
import math
from collections.abc import Sequence

import plotly.graph_objects as go
import pytest

from app.catalog.catalog import load_catalog
from app.checkpoint.text import dumps
from app.features.benchmarks.chart import HEIGHT, bench_charts
from app.features.benchmarks.overlay import Laid, overlay
from app.features.benchmarks.points import BarePass, BenchPoint, Spread, Tool
from app.features.benchmarks.study import study
from app.scenario.scenario import Scenario
from app.settings import ROOT
from app.web.figure import Chart, roles_of
from tests.features.benchmarks.files import bare, contents, points, served
from tests.features.workbench.charts.cases import leaves
from tests.features.workbench.charts.test_figures import TAG, painted

CATALOG = load_catalog()
RUN = points("vllm_serve_appended.jsonl")[0]


def laid(runs: Sequence[BenchPoint], scenario: Scenario | None = None) -> Sequence[Laid]:
    return overlay(scenario or served(), runs, CATALOG).laid


def sets() -> dict[str, list[Chart]]:
    sweep = study(contents("vllm_serve_appended.jsonl"), served(), CATALOG)
    llama = study(contents("llama_bench.json"), bare(), CATALOG)
    assert sweep.after is not None
    assert llama.after is not None
    many = dataclasses.replace(RUN, requests=1000)
    lengths = [dataclasses.replace(many, concurrency=c, prompt_tokens=p) for p in (100.0, 9000.0) for c in (1, 32)]
    crowd = dataclasses.replace(RUN, concurrency=1000, prompt_tokens=60_000.0, requests=10_000)
    return {
        "sweep": bench_charts(sweep.before.laid, sweep.after.laid),
        "bare": bench_charts(llama.before.laid, llama.after.laid),
        "one run": bench_charts(laid([RUN]), ()),
        "other lengths": bench_charts(laid(lengths), ()),
        "more than find room": bench_charts(laid([crowd]), ()),
        "faster than can be": bench_charts(laid([dataclasses.replace(RUN, tpot=Spread(1e-9))]), ()),
    }


DRAWN = [(name, chart) for name, charts in sets().items() for chart in charts]
EACH = pytest.mark.parametrize("chart", [c for _, c in DRAWN], ids=[f"{name} {c.id}" for name, c in DRAWN])


def trace(chart: Chart, name: str) -> dict[str, object]:
    found: dict[str, object] = next(t for t in chart.figure["data"] if t["name"].startswith(name))
    return found


@EACH
def test_plotly_takes_it_and_nothing_in_it_styles_inline(chart: Chart) -> None:
    assert len(go.Figure(painted(chart.figure)).data) == len(chart.figure["data"])
    dumps(chart.figure)
    for value in leaves(chart.figure):
        assert not (isinstance(value, str) and TAG.search(value)), value
        assert not isinstance(value, float) or math.isfinite(value)
    assert all(len(row) == len(chart.table.columns) for row in chart.table.rows)


@EACH
def test_every_colour_is_a_role_of_the_theme_and_the_place_is_as_high_as_the_figure(chart: Chart) -> None:
    tokens = (ROOT / "static/css/base.css").read_text()
    assert all(f"--chart-{role}:" in tokens for role in roles_of(chart.figure))
    assert f".plot-{chart.id}" in (ROOT / "static/css/bench.css").read_text()
    assert chart.figure["layout"]["height"] == HEIGHT


@EACH
def test_measured_expected_and_ceiling_never_look_alike(chart: Chart) -> None:
    ceiling, expected, measured = (trace(chart, name) for name in ("Ceiling", "Expected,", "Measured"))
    looks = [(t["mode"], str(t.get("line", {}))) for t in (ceiling, expected)]
    assert measured["mode"] == "markers"
    assert len({str(look) for look in looks}) == 2
    assert ("solid" in looks[0][1], "dot" in looks[1][1]) == (True, True)


def test_points_lie_where_they_were_measured() -> None:
    charts = {chart.id: chart for name, chart in DRAWN if name == "sweep"}
    runs = points("vllm_serve_appended.jsonl")
    drawn = trace(charts["bench-tpot_s"], "Measured")
    assert drawn["x"] == [run.concurrency for run in runs]
    assert drawn["y"] == [run.tpot.median_s for run in runs]
    assert trace(charts["bench-tpot_s"], "Expected with the fit")["y"]


def test_the_bars_are_the_interval() -> None:
    run = laid([RUN])[0]
    chart = next(chart for name, chart in DRAWN if (name, chart.id) == ("one run", "bench-tpot_s"))
    told = next(beside for beside in run.figures if beside.figure == "tpot_s").predicted
    expected = trace(chart, "Expected,")
    bars: dict[str, list[float]] = expected["error_y"]  # type: ignore[assignment]
    assert told.mid is not None
    assert told.mid + bars["array"][0] == pytest.approx(told.high)
    assert told.mid - bars["arrayminus"][0] == pytest.approx(told.low)


def test_a_line_breaks_between_other_lengths() -> None:
    chart = next(chart for name, chart in DRAWN if (name, chart.id) == ("other lengths", "bench-tpot_s"))
    xs = trace(chart, "Ceiling")["x"]
    assert xs == [1.0, 32.0, None, 1.0, 32.0]


def test_what_nothing_is_expected_of_has_a_ceiling_alone() -> None:
    chart = next(chart for name, chart in DRAWN if (name, chart.id) == ("more than find room", "bench-ttft_s"))
    assert "only ceilings" in chart.summary
    assert chart.table.rows[0][-1] == "none"


def test_what_is_faster_than_can_be_is_marked_and_told() -> None:
    chart = next(chart for name, chart in DRAWN if (name, chart.id) == ("faster than can be", "bench-tpot_s"))
    marker: dict[str, list[str]] = trace(chart, "Measured")["marker"]  # type: ignore[assignment]
    assert (marker["color"], marker["symbol"]) == (["@limit"], ["x"])
    assert "1 beat the ceiling" in chart.summary


def test_hostile_names_do_not_reach_a_figure() -> None:
    named = dataclasses.replace(RUN, model="<b>%{x}$a$</b>", backend="<i>")
    for chart in bench_charts(laid([named]), ()):
        assert "<b>" not in dumps(chart.figure).decode()


def test_no_runs_make_no_charts() -> None:
    assert bench_charts([], []) == []
    both = BenchPoint(tool=Tool.LLAMA_BENCH, concurrency=1, bare=BarePass(512, 128, 0, 100.0))
    assert bench_charts(laid([both], bare()), ()) == []
