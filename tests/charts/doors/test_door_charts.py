"""The chart of every door: one that Plotly takes, of the numbers that the door tells, and readable as a table."""

import math
import re
from typing import Any

import plotly.graph_objects as go
import pytest

from app.calc.doors.door import Door, DoorId
from app.calc.techniques.chunked import chunked
from app.calc.techniques.speculation import expected_tokens
from app.charts.doors.all import DOOR_CHARTS, chart_of, door_charts
from app.charts.doors.speculative_chart import RATES
from app.charts.figure import Chart, roles_of
from app.charts.gallery import NAMES, chart_named
from app.settings import ROOT
from app.strict_json import dumps
from tests.charts.cases import leaves
from tests.charts.test_figures import TAG, TYPES_WITHOUT_INLINE_STYLE, painted
from tests.door_scenarios import SCENARIOS, answers


def door(name: str, id_: DoorId) -> Door:
    return next(found for found in answers()[name].evaluation.doors if found.id is id_)


def drawn(name: str, id_: DoorId) -> Chart:
    return chart_of(door(name, id_), answers()[name].evaluation)


def traces(chart: Chart) -> dict[str, Any]:
    return {trace["name"]: trace for trace in chart.figure["data"]}


def column(found: Door, heading: str) -> list[float | None]:
    assert found.variants is not None
    at = [label for label, _ in found.variants.columns].index(heading)
    return [row.values[at] for row in found.variants.rows]


def test_every_door_has_a_chart() -> None:
    assert list(DOOR_CHARTS) == list(DoorId)
    assert {f"door-{id_}" for id_ in DoorId} < NAMES


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_chart_can_be_drawn_and_read(name: str) -> None:
    evaluation = answers()[name].evaluation
    tokens = set(re.findall(r"--chart-([a-z]+):", (ROOT / "static/css/base.css").read_text(encoding="utf-8")))
    for found, made in zip(evaluation.doors, door_charts(evaluation), strict=True):
        assert made.id == f"door-{found.id}"
        assert made == chart_named(made.id, evaluation)
        assert made.title
        assert made.question.endswith("?")
        assert made.summary.endswith(".")
        assert not re.search(r"\b(nan|inf)\b", made.summary)
        assert roles_of(made.figure) <= tokens
        assert len(go.Figure(painted(made.figure)).data) == len(made.figure["data"])
        assert {trace["type"] for trace in made.figure["data"]} <= TYPES_WITHOUT_INLINE_STYLE
        dumps(made.figure)
        for value in (*leaves(made.figure), *leaves(made.table.rows)):
            assert not isinstance(value, float) or math.isfinite(value), made.id
            assert not (isinstance(value, str) and TAG.search(value)), (made.id, value)
        assert made.table.rows
        assert all(len(row) == len(made.table.columns) and row[0] for row in made.table.rows)
        if found.refused is not None:
            assert made.summary == found.refused
            assert not made.figure["data"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_log_axes_have_labels_and_hold_their_points(name: str) -> None:
    for made in door_charts(answers()[name].evaluation):
        for key, axis in made.figure["layout"].items():
            if not isinstance(axis, dict) or axis.get("type") != "log":
                continue
            low, high = axis["range"]
            assert axis["tickvals"], made.id
            assert len(axis["tickvals"]) == len(set(axis["ticktext"]))
            for trace in made.figure["data"]:
                for value in trace[key[0]]:
                    assert low - 1e-9 <= math.log10(value) <= high + 1e-9, (made.id, key)


def test_a_bar_of_paging_is_the_share_that_its_door_tells() -> None:
    found, bars = door("reference", DoorId.PAGING), traces(drawn("reference", DoorId.PAGING))
    assert bars["Holds tokens"]["x"] == column(found, "Used")
    for held, empty in zip(bars["Holds tokens"]["x"], bars["Set aside and empty"]["x"], strict=True):
        assert held + empty == pytest.approx(100)
    # By hand: 1,000 tokens of the prompt and half of 500, of what is set aside.
    aside, used = column(found, "Set aside"), column(found, "Used")
    for tokens, share in zip(aside, used, strict=True):
        assert tokens is not None
        assert share is not None
        assert tokens * share / 100 == pytest.approx(1250)


def test_bars_of_batching_are_the_rates_of_its_door() -> None:
    found, bars = door("as it was once", DoorId.BATCHING), traces(drawn("as it was once", DoorId.BATCHING))
    assert bars["Static"]["y"] == column(found, "Static")
    assert bars["Continuous"]["y"] == column(found, "Continuous")
    assert "this scenario" in bars["Static"]["x"][-1]


def test_panels_of_prefix_caching_are_the_rows_of_its_door() -> None:
    found, bars = door("reference", DoorId.PREFIX_CACHING), traces(drawn("reference", DoorId.PREFIX_CACHING))
    assert bars["Room"]["x"] == column(found, "Room")
    assert bars["First token"]["x"] == [pytest.approx(1e3 * (value or 0)) for value in column(found, "TTFT")]


def test_the_budget_line_stands_at_the_scenario_and_its_point_is_the_doors() -> None:
    evaluation, made = answers()["reference"].evaluation, drawn("reference", DoorId.CHUNKED_PREFILL)
    budget = evaluation.deployment.engine.step_tokens
    assert made.figure["layout"]["shapes"][0]["x0"] == budget
    for name, value in (
        ("Pause, ceiling", chunked(evaluation.deployment, evaluation.measures, budget).pause_ceiling_s),
        ("First token, expected", chunked(evaluation.deployment, evaluation.measures, budget).best_first_s),
    ):
        line = traces(made)[name]
        assert dict(zip(line["x"], line["y"], strict=True))[budget] == pytest.approx(1e3 * value)


def test_gains_of_guessing_scale_with_the_tokens_of_a_step() -> None:
    made = drawn("guesses", DoorId.SPECULATIVE)
    curves = {name: trace["y"] for name, trace in traces(made).items()}
    asked = curves["As asked, 2.8 tokens a step: expected"]
    for rate, *_ in RATES:
        other = curves[f"{round(100 * rate)} % accepted"]
        ratio = float(expected_tokens(rate, 3)) / 2.8
        assert other == [pytest.approx(gain * ratio) for gain in asked]


def test_without_a_calibration_guessing_is_drawn_at_the_ceiling_alone() -> None:
    for name in SCENARIOS:
        evaluation = answers()[name].evaluation
        drawn_names = " ".join(traces(drawn(name, DoorId.SPECULATIVE)))
        assert ("expected" in drawn_names) == (evaluation.deployment.calibration is not None), name


def test_panels_of_the_ratios_are_the_rows_of_their_door() -> None:
    found, bars = door("reference", DoorId.DISAGGREGATION), traces(drawn("reference", DoorId.DISAGGREGATION))
    assert bars["For each GPU"]["y"] == column(found, "For each GPU")
    assert bars["TPOT"]["y"] == [pytest.approx(1e3 * (value or 0)) for value in column(found, "TPOT")]
