"""The chart of every optimization: one that Plotly takes, of the numbers that it tells, and readable as a table."""

import math
import re
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from app.calc.optimize.optimization import Optimization, Sentence, Size, written
from app.calc.optimize.registry import SPECS
from app.calc.time.chunked_prefill import chunked
from app.calc.time.speculation import expected_tokens
from app.checkpoint.text import dumps
from app.features.optimizations.charts.curves import RATES
from app.features.optimizations.charts.gallery import PREFIX, optimization_chart
from app.features.optimizations.view import optimizations_view
from app.features.workbench.charts.gallery import NAMES, chart_named
from app.settings import ROOT
from app.web.figure import Chart, roles_of
from tests.features.workbench.charts.cases import leaves
from tests.features.workbench.charts.test_figures import TAG, TYPES_WITHOUT_INLINE_STYLE, painted
from tests.optimization_scenarios import SCENARIOS, answers


def optimization(name: str, id_: str) -> Optimization:
    return next(found for found in answers()[name].evaluation.optimizations if found.id == id_)


def drawn(name: str, id_: str) -> Chart:
    return optimization_chart(optimization(name, id_), answers()[name].evaluation)


def traces(chart: Chart) -> dict[str, Any]:
    return {trace["name"]: trace for trace in chart.figure["data"]}


def column(found: Optimization, key: str) -> list[float | None]:
    assert found.variants is not None
    assert key in [column.key for column in found.variants.columns]
    return found.variants.numbers(key)


def renamed(found: Optimization) -> Optimization:
    """The same with every label of a figure and of a column reworded."""
    figures = tuple(replace(f, of=replace(f.of, label=f"reworded {f.of.key}")) for f in found.figures)
    variants = found.variants
    if variants is not None:
        columns = tuple(replace(column, label=f"Reworded {column.key}") for column in variants.columns)
        variants = replace(variants, columns=columns)
    return replace(found, figures=figures, variants=variants)


@pytest.mark.parametrize("name", SCENARIOS)
def test_labels_can_be_reworded_and_not_a_number_or_a_mark_moves(name: str) -> None:
    answered = answers()[name]
    before = optimizations_view(answered, binary=False)
    reworded = [renamed(found) for found in answered.evaluation.optimizations]
    for found, changed in zip(answered.evaluation.optimizations, reworded, strict=True):
        assert all(a.of.label != b.of.label for a, b in zip(found.figures, changed.figures, strict=True))
        was, now = (optimization_chart(one, answered.evaluation) for one in (found, changed))
        assert (was.figure, was.summary, was.table.rows) == (now.figure, now.summary, now.table.rows)
    evaluation = replace(answered.evaluation)
    evaluation.__dict__["optimizations"] = tuple(reworded)
    after = optimizations_view(replace(answered, evaluation=evaluation), binary=False)
    for was_shown, is_shown in zip(before.overview, after.overview, strict=True):
        assert (was_shown.counts is None) == (is_shown.counts is None)
        if was_shown.counts is not None and is_shown.counts is not None:
            assert is_shown.counts.label.startswith("reworded ")
            assert replace(is_shown.counts, label=was_shown.counts.label) == was_shown.counts
        assert replace(is_shown, counts=None) == replace(was_shown, counts=None)


def test_keys_name_one_figure_and_one_column_each_and_those_of_a_spec_exist() -> None:
    for found in answers()["reference"].evaluation.optimizations:
        keys = {figure.of.key for figure in found.figures}
        assert {*found.spec.shown} <= keys
        assert {*found.spec.counts} & keys
        assert found.variants is not None
        columns = [column.key for column in found.variants.columns]
        assert len(columns) == len(set(columns))


@pytest.mark.parametrize(
    ("said", "text", "binary"),
    [
        ((Size(16_060_522_496), " instead of ", Size(9_082_904_576)), "16.1 GB instead of 9.08 GB", False),
        ((Size(16_060_522_496), " instead of ", Size(9_082_904_576)), "15 GiB instead of 8.46 GiB", True),
        (("a cache of ", Size(512), ", W8A8 KV8, at 3.35 TB/s"), "a cache of 512 B, W8A8 KV8, at 3.35 TB/s", True),
        ((Size(2**30),), "1 GiB", True),
    ],
)
def test_a_sentence_says_its_sizes_in_the_units_of_the_page(said: Sentence, text: str, binary: bool) -> None:
    assert written(said, binary=binary) == text


def test_every_optimization_has_a_chart() -> None:
    assert {f"{PREFIX}{spec.id}" for spec in SPECS} < NAMES


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_chart_can_be_drawn_and_read(name: str) -> None:
    evaluation = answers()[name].evaluation
    tokens = set(re.findall(r"--chart-([a-z]+):", (ROOT / "static/css/base.css").read_text(encoding="utf-8")))
    for found in evaluation.optimizations:
        made = optimization_chart(found, evaluation)
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
    for made in (optimization_chart(f, answers()[name].evaluation) for f in answers()[name].evaluation.optimizations):
        for key, axis in made.figure["layout"].items():
            if not isinstance(axis, dict) or axis.get("type") != "log":
                continue
            low, high = axis["range"]
            assert axis["tickvals"], made.id
            assert len(axis["tickvals"]) == len(set(axis["ticktext"]))
            for trace in made.figure["data"]:
                for value in trace[key[0]]:
                    assert low - 1e-9 <= math.log10(value) <= high + 1e-9, (made.id, key)


def test_a_bar_of_paging_is_the_share_that_its_variants_tell() -> None:
    found, bars = optimization("reference", "paging"), traces(drawn("reference", "paging"))
    assert bars["Holds tokens"]["x"] == column(found, "used_share")
    for held, empty in zip(bars["Holds tokens"]["x"], bars["Set aside and empty"]["x"], strict=True):
        assert held + empty == pytest.approx(100)
    # By hand: 1,000 tokens of the prompt and half of 500, of what is set aside.
    aside, used = column(found, "set_aside"), column(found, "used_share")
    for tokens, share in zip(aside, used, strict=True):
        assert tokens is not None
        assert share is not None
        assert tokens * share / 100 == pytest.approx(1250)


def test_bars_of_batching_are_the_rates_of_its_optimization() -> None:
    found, bars = optimization("as it was once", "batching"), traces(drawn("as it was once", "batching"))
    assert bars["Static"]["y"] == column(found, "static")
    assert bars["Continuous"]["y"] == column(found, "continuous")
    assert "this scenario" in bars["Static"]["x"][-1]


def test_panels_of_prefix_caching_are_the_rows_of_its_optimization() -> None:
    found, bars = optimization("reference", "prefix_caching"), traces(drawn("reference", "prefix_caching"))
    assert bars["Room"]["x"] == column(found, "capacity")
    assert bars["First token"]["x"] == [pytest.approx(1e3 * (value or 0)) for value in column(found, "ttft")]


def test_the_budget_line_stands_at_the_scenario_and_its_point_is_that_of_the_variants() -> None:
    evaluation, made = answers()["reference"].evaluation, drawn("reference", "chunked_prefill")
    budget = evaluation.deployment.engine.step_tokens
    assert made.figure["layout"]["shapes"][0]["x0"] == budget
    for name, value in (
        ("Pause, ceiling", chunked(evaluation.deployment, evaluation.measures, budget).pause_ceiling_s),
        ("First token, expected", chunked(evaluation.deployment, evaluation.measures, budget).best_first_s),
    ):
        line = traces(made)[name]
        assert dict(zip(line["x"], line["y"], strict=True))[budget] == pytest.approx(1e3 * value)


def test_gains_of_guessing_scale_with_the_tokens_of_a_step() -> None:
    made = drawn("guesses", "speculative")
    curves = {name: trace["y"] for name, trace in traces(made).items()}
    asked = curves["As asked, 2.8 tokens a step: expected"]
    for rate, *_ in RATES:
        other = curves[f"{round(100 * rate)} % accepted"]
        ratio = float(expected_tokens(rate, 3)) / 2.8
        assert other == [pytest.approx(gain * ratio) for gain in asked]


def test_without_a_calibration_guessing_is_drawn_at_the_ceiling_alone() -> None:
    for name in SCENARIOS:
        evaluation = answers()[name].evaluation
        drawn_names = " ".join(traces(drawn(name, "speculative")))
        assert ("expected" in drawn_names) == (evaluation.deployment.calibration is not None), name


def test_panels_of_the_ratios_are_the_rows_of_their_optimization() -> None:
    found, bars = optimization("reference", "disaggregation"), traces(drawn("reference", "disaggregation"))
    assert bars["For each GPU"]["y"] == column(found, "throughput_per_gpu")
    assert bars["TPOT"]["y"] == [pytest.approx(1e3 * (value or 0)) for value in column(found, "tpot")]
