"""Every figure is one that Plotly takes, holds only finite numbers, and needs no inline style in the browser."""

import math
import re
from typing import Any

import plotly.graph_objects as go
import pytest

from app.checkpoint.text import dumps
from app.features.compare.charts.gallery import compared_charts
from app.features.workbench.charts.gallery import CHARTS, all_charts
from app.settings import ROOT
from app.web.figure import log_axis, roles_of
from tests.compared_plans import four_plans
from tests.features.workbench.charts.cases import answers, chart, every_chart, leaves

NAMES = tuple(answers())
LARGEST_PREFIX = 1e15  # from here on, and below the inverse, Plotly writes powers of ten as superscripts
TYPES_WITHOUT_INLINE_STYLE = {"scatter", "bar"}
TAG = re.compile(r"<(?!br>|extra></extra>|/extra>)[a-z/!]", re.IGNORECASE)


def painted(value: Any) -> Any:
    """The figure with a colour in the place of each role, as the browser has it."""
    if isinstance(value, str):
        return "#000000" if value.startswith("@") else value
    if isinstance(value, dict):
        return {key: painted(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [painted(item) for item in value]
    return value


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("id_", CHARTS)
def test_plotly_takes_the_figure(name: str, id_: str) -> None:
    figure = go.Figure(painted(chart(name, id_).figure))
    assert len(figure.data) == len(chart(name, id_).figure["data"])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("binary", [False, True])
def test_figures_and_tables_hold_finite_numbers_only(name: str, binary: bool) -> None:
    for id_ in CHARTS:
        made = chart(name, id_, binary=binary)
        for value in (*leaves(made.figure), *leaves(made.table.rows)):
            assert value is None or isinstance(value, (str, bool, int)) or math.isfinite(value), (id_, value)
        dumps(made.figure)  # what the page writes; refuses NaN and infinity
        assert "nan" not in made.summary
        assert "inf" not in made.summary


@pytest.mark.parametrize("name", NAMES)
def test_rows_have_a_cell_for_each_column_and_no_empty_name(name: str) -> None:
    for id_ in CHARTS:
        table = chart(name, id_).table
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert all(row[0] != "" for row in table.rows)


def test_the_gallery_draws_each_chart_once_and_in_order() -> None:
    charts = all_charts(answers()["reference"].evaluation)
    assert [made.id for made in charts] == list(CHARTS)
    assert all(made.title and made.question.endswith("?") and made.summary.endswith(".") for made in charts)


def test_every_role_has_a_token_and_no_token_is_unused() -> None:
    stylesheet = (ROOT / "static/css/base.css").read_text(encoding="utf-8")
    tokens = set(re.findall(r"--chart-([a-z]+):", stylesheet))
    side_by_side = compared_charts(four_plans(), 0, binary=False)
    used = set().union(*(roles_of(made.figure) for made in (*every_chart(), *side_by_side)))
    assert used == tokens


def test_colours_are_roles_and_never_literals() -> None:
    for made in every_chart():
        for value in leaves(made.figure):
            assert not (isinstance(value, str) and re.match(r"#[0-9a-f]{3,8}$|rgba?\(", value)), (made.id, value)


def test_no_figure_needs_inline_style() -> None:
    for made in every_chart():
        assert {trace["type"] for trace in made.figure["data"]} <= TYPES_WITHOUT_INLINE_STYLE
        assert not {"coloraxis", "colorbar", "showscale", "colorscale"} & keys_of(made.figure)
        for value in leaves(made.figure):
            assert not (isinstance(value, str) and TAG.search(value)), (made.id, value)


@pytest.mark.parametrize("name", NAMES)
def test_tick_labels_stay_within_the_prefixes_that_are_plain_text(name: str) -> None:
    for id_ in CHARTS:
        figure = chart(name, id_).figure
        for key, axis in figure["layout"].items():
            if not re.fullmatch(r"[xy]axis\d?", key) or axis.get("visible") is False:
                continue
            if axis.get("type") == "log":
                assert axis["tickmode"] == "array", (id_, key)
            elif largest := largest_on(figure, key):
                plain = axis.get("exponentformat") == "e"
                assert plain or 1 / LARGEST_PREFIX < largest < LARGEST_PREFIX, (id_, key, largest)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("binary", [False, True])
def test_a_logarithmic_axis_has_labels_and_holds_its_points(name: str, binary: bool) -> None:
    for id_ in CHARTS:
        figure = chart(name, id_, binary=binary).figure
        for key, axis in figure["layout"].items():
            if not isinstance(axis, dict) or axis.get("type") != "log":
                continue
            low, high = axis["range"]
            assert low < high
            assert axis["tickvals"], (id_, key, "no label at all")
            assert len(axis["tickvals"]) == len(axis["ticktext"]) == len(set(axis["ticktext"]))
            assert len(axis["tickvals"]) <= 20
            for trace in figure["data"]:
                if trace["mode"] == "markers" and trace.get(f"{key[0]}axis", key[0]) == key.replace("axis", ""):
                    assert low <= math.log10(trace[key[0]][0]) <= high, (id_, key, trace["name"])


@pytest.mark.parametrize(
    ("value", "text"), [(1e-2, "0.01"), (1, "1"), (1e3, "1k"), (1e5, "100k"), (1e14, "100T"), (1e15, "1P")]
)
def test_a_decade_is_labelled_with_its_prefix(value: float, text: str) -> None:
    axis = log_axis("x", value, value * 1.01)
    assert axis["ticktext"] == [text]
    assert axis["tickvals"] == [pytest.approx(value)]


def keys_of(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*(keys_of(item) for item in value.values()))
    return set().union(*(keys_of(item) for item in value)) if isinstance(value, list) else set()


def largest_on(figure: dict[str, Any], key: str) -> float:
    """The largest number that stands on an axis."""
    letter, name = key[0], key.replace("axis", "")
    numbers = [
        abs(value)
        for trace in figure["data"]
        if trace.get(f"{letter}axis", letter) == name
        for value in trace[letter]
        if isinstance(value, (int, float))
    ]
    return max(numbers, default=0.0)
