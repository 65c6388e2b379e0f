"""Goodput drawn: the curve of the evaluation, its knee, and the rates at which targets are passed."""

import math

import numpy as np
import plotly.graph_objects as go
import pytest

from app.checkpoint.text import dumps
from app.features.workbench.charts.gallery import CHARTS, all_charts, chart_named
from app.features.workbench.charts.goodput import goodput_chart
from tests.factories import answer_to
from tests.features.workbench.charts.test_figures import painted
from tests.optimization_scenarios import SCENARIOS, answers

TOLD = [name for name in SCENARIOS if answers()[name].evaluation.goodput is not None]


def test_it_is_told_of_several() -> None:
    assert {"saturated, with targets", "experts on eight cards", "apart"} <= set(TOLD)


@pytest.mark.parametrize("name", TOLD)
def test_curve_and_knee_are_those_of_the_evaluation(name: str) -> None:
    evaluation = answers()[name].evaluation
    found, made = evaluation.goodput, goodput_chart(evaluation)
    assert found is not None
    traces = {trace["name"]: trace for trace in made.figure["data"]}
    curve, knee = traces["Meet the targets (expected)"], traces["Knee: the goodput"]
    drawn = list(zip(curve["x"], curve["y"], strict=True))
    load = list(zip(found.load.rate_per_s.tolist(), found.load.good_per_s.tolist(), strict=True))
    assert set(drawn) - set(load) <= {(found.offered_per_s, found.rate_per_s)}
    assert set(load) <= set(drawn)
    assert (found.offered_per_s, found.rate_per_s) in drawn
    assert (knee["x"], knee["y"]) == ([found.offered_per_s], [found.rate_per_s])
    assert max(curve["y"]) <= found.rate_per_s * (1 + 1e-9)
    assert all(good <= offered * (1 + 1e-9) for offered, good in zip(curve["x"], curve["y"], strict=True))
    go.Figure(painted(made.figure))
    dumps(made.figure)
    assert [row[2] for row in made.table.rows] == curve["y"]
    lost = made.figure["layout"]["shapes"][0]
    assert lost["x0"] == found.most_per_s < lost["x1"]


def test_a_target_is_passed_where_its_line_stands() -> None:
    evaluation = answer_to(
        workload={
            "prompt_tokens": 1000,
            "output_tokens": 500,
            "concurrency": None,
            "slo_ttft_s": 0.3,
            "slo_tpot_s": 0.016,
        }
    ).evaluation
    found, made = evaluation.goodput, goodput_chart(evaluation)
    assert found is not None
    lines = [shape for shape in made.figure["layout"]["shapes"] if shape["type"] == "line"]
    texts = [label["text"] for label in made.figure["layout"]["annotations"]]
    assert len(lines) == 2
    assert "mean TTFT passes 300 ms" in texts
    assert "TPOT passes 16 ms" in texts
    for line, values, target in zip(lines, (found.load.ttft_s, found.load.tpot_s), (0.3, 0.016), strict=True):
        assert np.interp(line["x0"], found.load.rate_per_s, values) == pytest.approx(target)
    assert found.rate_per_s <= lines[1]["x0"] * (1 + 1e-3)  # no answer is good beyond the target of its tokens


def test_no_rate_is_good_where_one_request_is_late_already() -> None:
    evaluation = answer_to(workload={"prompt_tokens": 1000, "output_tokens": 500, "slo_tpot_s": 1e-6}).evaluation
    made = goodput_chart(evaluation)
    assert made.summary.startswith("No rate is good: each token takes too long")
    assert all(math.isfinite(value) for value in made.figure["layout"]["xaxis"]["range"])


def test_the_workbench_draws_it_where_a_target_is_set() -> None:
    with_targets, without = (answers()[n].evaluation for n in ("saturated, with targets", "reference"))
    assert [chart.id for chart in all_charts(with_targets)] == [*CHARTS, "goodput"]
    assert [chart.id for chart in all_charts(without)] == list(CHARTS)
    assert chart_named("goodput", without) is None
    assert chart_named("door-none", without) is None
    with pytest.raises(ValueError, match="goodput"):
        goodput_chart(without)
