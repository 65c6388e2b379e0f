"""The charts of every model: figures that Plotly takes, whose numbers are the calculators'."""

import re

import plotly.graph_objects as go
import pytest

from app.calc.dtypes import Dtype
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.model.attention_variants import multi_head_bytes_per_sequence
from app.calc.model.parameters import count_parameters
from app.checkpoint.text import dumps
from app.features.catalog.charts import multi_head_chart, parameter_chart, parameter_groups
from app.settings import ROOT
from app.web.figure import Chart, roles_of
from tests.factories import shipped_catalog
from tests.features.workbench.charts.cases import leaves
from tests.features.workbench.charts.test_figures import TAG, TYPES_WITHOUT_INLINE_STYLE, painted

ARCHITECTURES = shipped_catalog().architectures
EACH = pytest.mark.parametrize("id_", ARCHITECTURES)
STYLES = (ROOT / "static" / "css" / "base.css").read_text(encoding="utf-8")


def charts(id_: str) -> list[Chart]:
    return [parameter_chart(count_parameters(ARCHITECTURES[id_])), multi_head_chart(ARCHITECTURES[id_])]


@EACH
def test_plotly_takes_the_figures_and_they_need_no_inline_style(id_: str) -> None:
    for chart in charts(id_):
        assert len(go.Figure(painted(chart.figure)).data) == len(chart.figure["data"])
        assert {trace["type"] for trace in chart.figure["data"]} <= TYPES_WITHOUT_INLINE_STYLE
        for value in leaves(chart.figure):
            assert not (isinstance(value, str) and (TAG.search(value) or re.match(r"#[0-9a-f]{3,8}$|rgba?\(", value)))
        assert all(f"--chart-{role}:" in STYLES for role in roles_of(chart.figure))
        dumps(chart.figure)  # refuses NaN and infinity


@EACH
def test_the_groups_sum_to_what_a_server_loads(id_: str) -> None:
    counts = count_parameters(ARCHITECTURES[id_])
    chart = parameter_chart(counts)
    assert sum(parameter_groups(counts).values()) == counts.total
    assert {row[0]: row[1] for row in chart.table.rows} == parameter_groups(counts)
    assert sum(float(row[2]) for row in chart.table.rows) == pytest.approx(1)
    (bars,) = chart.figure["data"]
    drawn = dict(zip(bars["y"], bars["x"], strict=True))
    assert {name: round(value * 1e9) for name, value in drawn.items()} == parameter_groups(counts)
    assert bars["x"] == sorted(bars["x"])
    assert chart.figure["layout"]["xaxis"]["range"][1] > max(bars["x"])


@EACH
def test_the_cache_is_drawn_to_the_models_own_limit(id_: str) -> None:
    architecture = ARCHITECTURES[id_]
    chart = multi_head_chart(architecture)
    own, plain = chart.figure["data"]
    assert own["x"][-1] == plain["x"][-1] == architecture.max_position
    assert own["x"][0] == 1_024
    for tokens, held, unsaved in zip(own["x"], own["y"], plain["y"], strict=True):
        assert held * 1e9 == pytest.approx(kv_bytes_per_sequence(architecture, tokens, Dtype.BF16))
        expected = multi_head_bytes_per_sequence(architecture, tokens, Dtype.BF16)
        assert unsaved * 1e9 == pytest.approx(expected)
    assert [row[1] for row in chart.table.rows] == pytest.approx([held * 1e9 for held in own["y"]])
    low, high = (10**end for end in chart.figure["layout"]["yaxis"]["range"])
    assert all(low <= value <= high for line in (own, plain) for value in line["y"])


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            "deepseek-v3",
            "At 163,840 tokens, its limit, a sequence holds 11.51 GB; with multi-head attention 818.7 GB, ",
        ),
        ("llama-3.1-8b", "a sequence holds 17.18 GB; with multi-head attention 68.72 GB, 4 times that."),
        ("llama-2-7b", "it has plain multi-head attention, and saves nothing."),
    ],
)
def test_a_sentence_says_what_is_saved(model: str, words: str) -> None:
    assert words in multi_head_chart(ARCHITECTURES[model]).summary


def test_the_largest_part_is_named() -> None:
    said = parameter_chart(count_parameters(ARCHITECTURES["llama-3.1-8b"])).summary
    assert said == "Feed-forward: 5,637,144,576 of 8,030,261,248 parameters, 70.2 %."
