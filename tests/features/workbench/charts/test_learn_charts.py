"""The charts of the lesson: figures that Plotly takes, whose numbers are the calculators'."""

import re

import plotly.graph_objects as go
import pytest

from app.checkpoint.text import dumps
from app.features.learn.charts import pace_chart, reads_chart, timeline_chart
from app.settings import ROOT
from app.web.figure import Chart, roles_of
from tests.features.learn.cases import SCENARIOS, told
from tests.features.workbench.charts.cases import answers, leaves, traces
from tests.features.workbench.charts.test_figures import TAG, TYPES_WITHOUT_INLINE_STYLE, painted

STYLES = (ROOT / "static" / "css" / "base.css").read_text(encoding="utf-8")
HEIGHTS = (ROOT / "static" / "css" / "learn.css").read_text(encoding="utf-8")


def check(chart: Chart) -> None:
    assert len(go.Figure(painted(chart.figure)).data) == len(chart.figure["data"])
    assert {trace["type"] for trace in chart.figure["data"]} <= TYPES_WITHOUT_INLINE_STYLE
    for value in leaves(chart.figure):
        assert not (isinstance(value, str) and (TAG.search(value) or re.match(r"#[0-9a-f]{3,8}$|rgba?\(", value)))
    assert all(f"--chart-{role}:" in STYLES for role in roles_of(chart.figure))
    assert f".plot-{chart.id} " in HEIGHTS
    assert chart.summary.endswith(".")
    assert all(len(row) == len(chart.table.columns) for row in chart.table.rows)
    dumps(chart.figure)  # refuses NaN and infinity


@pytest.mark.parametrize("name", list(answers()))
def test_plotly_takes_the_figures_of_every_scenario(name: str) -> None:
    evaluation = answers()[name].evaluation
    for chart in (timeline_chart(evaluation), pace_chart(evaluation), reads_chart(evaluation)):
        check(chart)


@pytest.mark.parametrize("name", ["reference", "experts, latent cache, eight cards", "does not fit", "integrated"])
def test_cards_are_drawn_with_the_readers_own_among_them(name: str) -> None:
    chapter = told(name)["cards"]
    chart = chapter.charts["cards"]
    check(chart)
    (own,) = traces(chart.figure, "This card")
    assert own["x"] == [chapter.numbers["own"].value]
    drawn = {name: pace for t in chart.figure["data"] for name, pace in zip(t["y"], t["x"], strict=True)}
    assert len(drawn) == len(chart.table.rows) >= 6
    assert sorted(drawn.values()) == sorted(float(row[6]) for row in chart.table.rows)
    for row in chart.table.rows:
        assert float(row[5]) == pytest.approx(float(row[4]) / float(row[2]))


def test_the_timeline_is_the_answer_token_by_token() -> None:
    rule = answers()["reference"].evaluation.rule_of_thumb
    chart = timeline_chart(answers()["reference"].evaluation)
    whole = [trace for trace in chart.figure["data"] if trace["xaxis"] == "x"]
    assert sum(trace["x"][0] for trace in whole) == pytest.approx(rule.total_latency_s)
    steps = [t for t in chart.figure["data"] if t["xaxis"] == "x2" and t["name"] == "Decode"]
    assert [step["base"][0] for step in steps] == pytest.approx(
        [rule.prefill_s + i * rule.decode_step_s for i in range(12)]
    )
    assert chart.table.rows[-1][2] == pytest.approx(rule.total_latency_s)


def test_the_pace_is_level_up_to_the_ridge() -> None:
    chart = pace_chart(answers()["reference"].evaluation)
    (each,) = [trace for trace in chart.figure["data"] if trace["name"] == "Each user"]
    pairs = list(zip(each["x"], each["y"], strict=True))
    assert {round(pace, 6) for users, pace in pairs if users < 295} == {round(each["y"][0], 6)}
    assert all(pace < each["y"][0] for users, pace in pairs if users > 296)
    assert "among 64 each keeps that" in chart.summary


def test_a_step_reads_the_weights_once_and_each_cache_for_itself() -> None:
    answered = answers()["reference"]
    chart = reads_chart(answered.evaluation)
    weights, cache = chart.figure["data"]
    assert weights["y"] == pytest.approx([16.0605] * len(weights["x"]), rel=1e-5)
    one = answered.evaluation.measures.memory.kv_bytes_per_sequence
    assert [y * 1e9 for y in cache["y"]] == pytest.approx([one * int(x.replace(",", "")) for x in cache["x"]])
    assert "From 82 such users on" in chart.summary


def test_every_scenario_of_the_lesson_has_its_eight_charts() -> None:
    for name in list(SCENARIOS)[:4]:
        assert [chart.id for chart in told(name).charts] == [
            "timeline",
            "roofline",
            "pace",
            "reads",
            "context",
            "gap",
            "memory",
            "cards",
        ]
