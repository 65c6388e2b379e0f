"""The roofs of every accelerator: a figure that Plotly takes, whose numbers are the catalog's."""

import math
import re
from itertools import pairwise

import plotly.graph_objects as go
import pytest

from app.calc.dtypes import Dtype
from app.catalog.accelerators import AcceleratorRecord
from app.checkpoint.text import dumps
from app.features.catalog.charts import HEIGHT, accelerator_roofs
from app.settings import ROOT
from app.web.figure import Chart, roles_of
from tests.factories import shipped_catalog
from tests.features.workbench.charts.cases import leaves
from tests.features.workbench.charts.test_figures import TAG, TYPES_WITHOUT_INLINE_STYLE, painted

RECORDS = shipped_catalog().accelerators
DRAWN = {id_: record for id_, record in RECORDS.items() if record.dense_tflops}
EACH = pytest.mark.parametrize("record", DRAWN.values(), ids=DRAWN)


def drawn(record: AcceleratorRecord) -> Chart:
    made = accelerator_roofs(record.accelerator)
    assert made is not None
    return made


@EACH
def test_plotly_takes_the_figure_and_it_needs_no_inline_style(record: AcceleratorRecord) -> None:
    figure = drawn(record).figure
    assert len(go.Figure(painted(figure)).data) == len(figure["data"])
    assert {trace["type"] for trace in figure["data"]} <= TYPES_WITHOUT_INLINE_STYLE
    for value in leaves(figure):
        assert not (isinstance(value, str) and (TAG.search(value) or re.match(r"#[0-9a-f]{3,8}$|rgba?\(", value)))
    dumps(figure)  # refuses NaN and infinity


@EACH
def test_the_table_is_the_catalogs(record: AcceleratorRecord) -> None:
    rows = drawn(record).table.rows
    assert [row[0] for row in rows] == [dtype.value for dtype in Dtype if dtype in record.dense_tflops]
    bandwidth = record.memory.bandwidth_gb_per_s * 1e9
    for name, rate, ridge in rows:
        assert rate == pytest.approx(record.dense_tflops[Dtype(str(name))] * 1e12)
        assert ridge == pytest.approx(float(rate) / bandwidth)


@EACH
def test_each_roof_is_level_from_its_ridge_on(record: AcceleratorRecord) -> None:
    slope, *roofs = drawn(record).figure["data"]
    bandwidth = record.memory.bandwidth_gb_per_s * 1e9
    assert [y / x for x, y in zip(slope["x"], slope["y"], strict=True)] == pytest.approx([bandwidth] * 2)
    named = [name for roof in roofs for name in roof["name"].split(", ")]
    assert sorted(named) == sorted(record.dense_tflops)
    assert slope["x"][1] == pytest.approx(max(roof["x"][0] for roof in roofs))
    for roof in roofs:
        assert roof["y"][0] == roof["y"][1] == pytest.approx(roof["x"][0] * bandwidth)
        for name in roof["name"].split(", "):
            assert roof["y"][0] == pytest.approx(record.dense_tflops[Dtype(name)] * 1e12)


@EACH
def test_everything_stands_inside_the_axes(record: AcceleratorRecord) -> None:
    figure = drawn(record).figure
    for letter in "xy":
        axis = figure["layout"][f"{letter}axis"]
        low, high = axis["range"]
        assert axis["tickvals"]
        for trace in figure["data"]:
            assert all(low - 1e-9 <= math.log10(value) <= high + 1e-9 for value in trace[letter])
        assert all(low <= note[letter] <= high for note in figure["layout"]["annotations"])


@EACH
def test_labels_of_neighbours_do_not_stand_on_each_other(record: AcceleratorRecord) -> None:
    figure = drawn(record).figure
    low, high = figure["layout"]["yaxis"]["range"]
    pixels = (HEIGHT - 60) / (high - low)
    right = [
        note for note in figure["layout"]["annotations"] if note["xanchor"] == "right" and "ridge" not in note["text"]
    ]
    tops = sorted((note["y"] * pixels + (0 if note["yanchor"] == "bottom" else -12)) for note in right)
    assert all(upper - lower >= 9 for lower, upper in pairwise(tops)), tops


def test_without_a_rate_there_is_nothing_to_draw() -> None:
    assert accelerator_roofs(RECORDS["gb300-ws"].accelerator) is None
    assert set(RECORDS) - set(DRAWN) == {"gb300-ws"}


def test_the_summary_names_the_usual_rate_and_its_ridge() -> None:
    assert drawn(RECORDS["h100-sxm-80gb"]).summary.startswith(
        "In bf16 at most 989.4 TFLOP/s over 3.35 TB/s: below 295.3 FLOP/B memory binds."
    )
    assert drawn(RECORDS["v100-sxm2-32gb"]).summary.startswith("In fp16 at most 125 TFLOP/s")
    assert drawn(RECORDS["tpu-8t"]).summary.startswith("In fp4 at most 12.6 PFLOP/s")


def test_its_roles_have_tokens_and_its_place_has_a_height() -> None:
    tokens = set(re.findall(r"--chart-([a-z]+):", (ROOT / "static/css/base.css").read_text(encoding="utf-8")))
    assert all(roles_of(drawn(record).figure) <= tokens for record in DRAWN.values())
    assert f".plot-roofs {{ min-height: {HEIGHT}px; }}" in (ROOT / "static/css/catalog.css").read_text(encoding="utf-8")
