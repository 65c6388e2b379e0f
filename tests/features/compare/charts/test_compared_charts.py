"""The charts of plans side by side: figures that Plotly takes, numbers of the evaluations, plans told apart."""

import html
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go
import pytest

from app.checkpoint.text import dumps
from app.features.compare.charts.bars import LOOKS, filled, stay
from app.features.compare.charts.gallery import COMPARED, Point, compared_charts, curve_of, frontier
from app.features.compare.plans import Plan
from app.settings import ROOT
from app.web.figure import Chart, roles_of
from tests.compared_plans import four_plans, plans_of
from tests.factories import answer_to
from tests.features.workbench.charts.cases import answers, leaves, traces
from tests.features.workbench.charts.test_figures import LARGEST_PREFIX, TAG, keys_of, largest_on, painted
from tests.features.workbench.charts.test_user_text import HOSTILE

EXTREMES = (
    "longest and most",
    "one token in, one out",
    "slowest card",
    "fastest card",
    "tiny model on the fastest card",
    "huge model on the slowest card",
    "all arithmetic",
    "all bandwidth",
    "apart on two kinds of card",
    "guesses",
)
CASES = ("four", "one", "twice the same", "nothing fits", "more users than room", *EXTREMES)
EACH = pytest.mark.parametrize(("name", "id_"), [(name, id_) for name in CASES for id_ in COMPARED])


@cache
def sets() -> Mapping[str, Sequence[Plan]]:
    """Plans of every kind side by side, by name."""
    four = four_plans()
    return {
        "four": four,
        "one": four[:1],
        "twice the same": plans_of([answer_to(), answer_to()]),
        "nothing fits": plans_of([answers()["weights do not fit"], answers()["saturated, nothing fits"]]),
        "more users than room": plans_of([answers()["users do not fit"], answers()["engine runs fewer"]]),
        **{name: plans_of([answer_to(), answers()[name]]) for name in EXTREMES},
    }


@cache
def drawn(name: str, id_: str) -> tuple[Chart, Chart]:
    """One chart of one set in both units, the last plan the baseline."""
    plans = sets()[name]
    decimal, binary = (COMPARED[id_](plans, len(plans) - 1, binary=binary) for binary in (False, True))
    return decimal, binary


@EACH
def test_plotly_takes_the_figure_and_every_number_is_finite(name: str, id_: str) -> None:
    for chart in drawn(name, id_):
        assert len(go.Figure(painted(chart.figure)).data) == len(chart.figure["data"])
        for value in (*leaves(chart.figure), *leaves(chart.table.rows)):
            assert value is None or isinstance(value, (str, bool, int)) or math.isfinite(value)
        dumps(chart.figure)
        assert chart.title
        assert chart.question.endswith("?")
        assert chart.summary.endswith(".")
        assert not re.search(r"\b(nan|inf)\b", chart.summary)


@EACH
def test_no_figure_needs_inline_style(name: str, id_: str) -> None:
    for chart in drawn(name, id_):
        assert {trace["type"] for trace in chart.figure["data"]} <= {"scatter", "bar"}
        assert not {"coloraxis", "colorbar", "showscale", "colorscale"} & keys_of(chart.figure)
        for value in leaves(chart.figure):
            assert not (isinstance(value, str) and (TAG.search(value) or re.match(r"#[0-9a-f]{3,8}$|rgba?\(", value)))


@EACH
def test_axes_hold_their_points_and_their_labels_stay_plain_text(name: str, id_: str) -> None:
    for chart in drawn(name, id_):
        for key in ("xaxis", "yaxis"):
            axis = chart.figure["layout"][key]
            if axis.get("type") == "log":
                low, high = axis["range"]
                assert low < high
                assert axis["ticktext"]
                for trace in chart.figure["data"]:
                    if "markers" in trace["mode"]:
                        assert all(low <= math.log10(value) <= high for value in trace[key[0]])
            elif largest := largest_on(chart.figure, key):
                assert axis.get("exponentformat") == "e" or 1 / LARGEST_PREFIX < largest < LARGEST_PREFIX


@EACH
def test_rows_have_a_cell_for_each_column(name: str, id_: str) -> None:
    for chart in drawn(name, id_):
        assert chart.table.rows
        assert all(len(row) == len(chart.table.columns) and row[0] for row in chart.table.rows)


def test_the_gallery_draws_each_chart_once_and_in_order() -> None:
    assert [chart.id for chart in compared_charts(sets()["four"], 0, binary=False)] == list(COMPARED)


def test_plans_differ_by_colour_marker_and_dash() -> None:
    for part in ("role", "symbol", "dash"):
        assert len({getattr(look, part) for look in LOOKS}) == len(LOOKS) == 4
    roofline, tradeoff, *_ = compared_charts(sets()["four"], 0, binary=False)
    for chart in (roofline, tradeoff):
        drawn = {trace["marker"]["symbol"] for trace in chart.figure["data"] if "markers" in trace["mode"]}
        assert drawn - {"x"} <= {look.symbol for look in LOOKS}
        assert len(drawn - {"x"}) >= 3
    assert {look.role for look in LOOKS} <= set().union(*(roles_of(c.figure) for c in (roofline, tradeoff)))


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_the_colours_of_plans_stand_out_from_their_surface(theme: int) -> None:
    stylesheet = (ROOT / "static/css/base.css").read_text(encoding="utf-8")
    tokens = {name: pair for name, *pair in re.findall(r"--([a-z-]+): light-dark\((#\w{6}), (#\w{6})\)", stylesheet)}
    surface = luminance(tokens["surface"][theme])
    for look in LOOKS:
        light, dark = sorted((surface, luminance(tokens[f"chart-{look.role}"][theme])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3, look


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG has it."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_roofline_has_both_phases_of_each_plan_under_its_own_roof() -> None:
    chart = COMPARED["compare-roofline"](sets()["four"], 0, binary=False)
    for plan in sets()["four"]:
        measures = plan.answer.evaluation.measures
        (points,) = traces(chart.figure, plan.label)
        phases = (measures.prefill, measures.decode)
        assert points["x"] == [phase.intensity_flops_per_byte for phase in phases]
        assert points["y"] == [phase.flops / phase.ceiling_s for phase in phases]
    for _, _, _, reached, roof, _ in chart.table.rows:
        assert isinstance(reached, float)
        assert isinstance(roof, float)
        assert reached <= roof * (1 + 1e-9)


def test_plans_on_the_same_card_share_one_roof() -> None:
    chart = COMPARED["compare-roofline"](sets()["twice the same"], 0, binary=False)
    assert [trace["name"] for trace in chart.figure["data"] if trace["mode"] == "lines"] == ["Roof of A and B"]
    assert "one roof" in chart.summary


def test_the_frontier_is_what_nothing_beats_in_both() -> None:
    points = [Point(1, 9.0, 1.0), Point(2, 8.0, 3.0), Point(3, 7.0, 2.0), Point(4, 6.0, 5.0), Point(5, 6.0, 4.0)]
    assert frontier(points) == (points[3], points[1], points[0])
    assert frontier([]) == ()


def test_a_curve_starts_with_one_user_ends_with_full_memory_and_holds_the_plan_itself() -> None:
    for plan in sets()["four"][:3]:
        curve, measures = curve_of(plan, expected=True), plan.answer.evaluation.measures
        assert (curve.points[0].users, curve.points[-1].users) == (1, measures.memory.max_concurrency)
        served, gpus = measures.serving, plan.answer.evaluation.deployment.gpus
        assert curve.here is not None
        assert curve.here.pace == served.output_tokens_per_s_per_user.mid
        assert curve.here.yield_ == pytest.approx((served.output_tokens_per_s.mid or 0) / gpus)
        for slower, faster in pairwise(curve.best):
            assert slower.pace < faster.pace
            assert slower.yield_ > faster.yield_
    assert curve_of(sets()["four"][3], expected=True).points == ()


def test_the_line_is_stepped_and_only_expected_stands_beside_expected() -> None:
    chart = COMPARED["compare-tradeoff"](sets()["four"], 1, binary=False)
    lines = [trace for trace in chart.figure["data"] if "line" in trace and trace["mode"] == "lines+markers"]
    assert {trace["line"]["shape"] for trace in lines} == {"vh"}
    assert "better" in chart.summary
    assert "D has no room" in chart.summary
    assert "expected" in chart.figure["layout"]["xaxis"]["title"]["text"]
    assert ("D · Plan 3", 0, 0.0, 0.0, "no room") in chart.table.rows


def test_a_pace_that_all_plans_aim_at_is_drawn() -> None:
    aiming = [answer_to(workload={"slo_tpot_s": 0.02}), answer_to(hardware="h200-sxm", workload={"slo_tpot_s": 0.02})]
    chart = COMPARED["compare-tradeoff"](plans_of(aiming), 0, binary=False)
    assert [shape["x0"] for shape in chart.figure["layout"]["shapes"]] == [50]
    mixed = COMPARED["compare-tradeoff"](plans_of([aiming[0], answer_to()]), 0, binary=False)
    assert mixed.figure["layout"]["shapes"] == []


@pytest.mark.parametrize("name", tuple(answers()))
def test_the_parts_of_a_card_sum_to_it_and_those_of_an_answer_to_its_time(name: str) -> None:
    evaluation = answers()[name].evaluation
    found = filled(evaluation)
    inside, free = sum(found.parts_bytes[:-1]), evaluation.measures.memory.per_gpu.free_bytes
    assert inside - found.capacity_bytes == pytest.approx(max(0.0, -free), rel=1e-6, abs=1)
    assert min(found.parts_bytes) >= 0
    for expected in (True, False):
        one = stay(evaluation, expected=expected)
        assert sum(one.parts_s) == pytest.approx(one.total_s)
        assert min(one.parts_s) >= 0


def test_cache_without_room_is_hatched_beyond_the_card() -> None:
    plans = sets()["more users than room"]
    chart = COMPARED["compare-memory"](plans, 0, binary=False)
    (bar,) = traces(chart.figure, "Cache without room")
    assert bar["marker"]["pattern"]["shape"] == "x"
    assert bar["x"][0] > 0
    assert "without room" in chart.summary


@pytest.mark.parametrize("text", HOSTILE)
def test_a_name_is_a_literal_wherever_a_figure_holds_it(text: str) -> None:
    def texts(name: str) -> list[Any]:
        plans = [Plan(place, plan.answer, name=name) for place, plan in enumerate(sets()["four"])]
        return [value for chart in compared_charts(plans, 0, binary=False) for value in leaves(chart.figure)]

    changed = [after for before, after in zip(texts("Plain"), texts(text), strict=True) if before != after]
    assert changed
    for after in changed:
        assert not set("<>$%@\"'") & set(after)
        shown = html.unescape(after)
        assert text in shown or text[:39] + "…" in shown
