"""The moving roofline: vendor's roof solid, measured one dashed, predictions hollow, dots where they were measured."""

import math
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from app.calc.dtypes import Dtype
from app.checkpoint.text import dumps
from app.features.live.roofline import MeasuredRoofs, live_roofline
from app.machine.live.dots import Dot, Trail
from tests.factories import answer_to, shipped_catalog
from tests.features.workbench.charts.test_figures import painted

H100 = shipped_catalog().devices["h100-sxm-80gb"]
EVALUATION = answer_to().evaluation
TRAIL = Trail("nvidia-0", "Card 0", "DRAM and tensor activity", (Dot(30.0, 1e14, 1e12), Dot(0.0, 2e14, 2e12)))


def traces(*trails: Trail, **more: Any) -> dict[str, dict[str, Any]]:
    figure = live_roofline(H100, Dtype.BF16, trails, **more).figure
    go.Figure(painted(figure))
    dumps(figure)
    return {trace["name"]: trace for trace in figure["data"]}


def test_the_dot_stands_where_it_was_measured_with_its_tail_behind_it() -> None:
    found = traces(TRAIL)
    assert (found["Card 0, measured now"]["x"], found["Card 0, measured now"]["y"]) == ([100.0], [2e14])
    assert found["Card 0, last minute"]["y"] == [1e14, 2e14]
    faded, fresh = found["Card 0, last minute"]["marker"]["opacity"]
    assert faded < fresh == 1


def test_levels_never_look_alike() -> None:
    found = traces(TRAIL, evaluation=EVALUATION, measured=MeasuredRoofs(2.9e12, 7.5e14))
    assert found["bf16 roof"]["line"]["dash"] == "solid"
    assert found["measured roof"]["line"]["dash"] == "dash"
    assert found["Decode, expected"]["marker"]["symbol"].endswith("-open")
    assert not found["Card 0, measured now"]["marker"]["symbol"].endswith("-open")


def test_a_measured_roof_is_drawn_at_what_was_reached() -> None:
    roof = traces(measured=MeasuredRoofs(2.9e12, 7.5e14))["measured roof"]
    assert roof["y"][-1] == 7.5e14
    assert roof["y"][0] == pytest.approx(roof["x"][0] * 2.9e12)
    half = traces(measured=MeasuredRoofs(2.9e12, None))["measured roof"]
    assert half["y"][-1] == H100.peak(Dtype.BF16)


def test_predictions_are_those_of_the_evaluation() -> None:
    decode, cost = traces(evaluation=EVALUATION)["Decode, expected"], EVALUATION.measures.decode
    assert decode["x"] == [cost.intensity_flops_per_byte]
    assert decode["y"] == [cost.flops / EVALUATION.measures.decode_s.best_known]


def test_no_dot_is_above_its_place_on_the_axes() -> None:
    wild = Trail("s", "S", "x", (Dot(0.0, 1e-3, 1e12), Dot(0.0, 1e18, 1.0)))
    figure = live_roofline(H100, Dtype.BF16, [wild]).figure
    low, high = figure["layout"]["xaxis"]["range"]
    assert all(math.isfinite(end) for end in (low, high, *figure["layout"]["yaxis"]["range"]))
    assert high - low < 10


def test_without_a_dot_it_says_so() -> None:
    chart = live_roofline(H100, Dtype.BF16, [])
    assert chart.summary.startswith("Nothing moves yet")
    assert chart.table.rows == ()


def test_the_table_and_the_words_divide() -> None:
    chart = live_roofline(H100, Dtype.BF16, [TRAIL])
    (row,) = chart.table.rows
    assert row[:4] == ("Card 0", 100.0, 2e14, 2e12)
    assert row[5] == pytest.approx(2e12 / 3.35e12)
    assert "59.7 % of the bandwidth" in chart.summary


def test_a_label_is_plain_text() -> None:
    hostile = Trail("s", "<b>$x$</b>%{x}", "x", TRAIL.dots)
    for name in traces(hostile):
        assert not set("<>$%") & set(name)


def test_a_dot_of_a_while_ago_is_not_called_now() -> None:
    over = Trail("server-1", "main", "x", (Dot(12.2, 1e14, 1e12),), is_over=True)
    dot = traces(over)["main, measured 12 s ago"]
    assert dot["opacity"] < traces(TRAIL)["Card 0, measured now"]["opacity"]
    assert live_roofline(H100, Dtype.BF16, [over]).summary.startswith("main, 12 s ago: ")
    assert live_roofline(H100, Dtype.BF16, [over, TRAIL]).summary.startswith("Card 0: ")


@pytest.mark.parametrize(
    ("cards", "servers", "drawn"), [(8, 3, (3, 3)), (8, 1, (5, 1)), (1, 9, (1, 5)), (2, 2, (2, 2))]
)
def test_cards_and_servers_share_the_room_and_all_are_in_the_table(
    cards: int, servers: int, drawn: tuple[int, int]
) -> None:
    of_cards = [replace(TRAIL, source=f"nvidia-{at}", label=f"Card {at}") for at in range(cards)]
    of_servers = [Trail(f"server-{at}", f"S{at}", "tokens", TRAIL.dots) for at in range(servers)]
    chart = live_roofline(H100, Dtype.BF16, [*of_cards, *of_servers])
    dots = [trace for trace in chart.figure["data"] if trace["name"].endswith("measured now")]
    assert (sum("Card" in dot["name"] for dot in dots), sum("S" in dot["name"] for dot in dots)) == drawn
    assert len({(dot["marker"]["color"], dot["marker"]["symbol"]) for dot in dots}) == len(dots)
    assert len(chart.table.rows) == cards + servers
    left = cards + servers - len(dots)
    assert (f"{left} more sources are in the table." in chart.summary) is (left > 0)
