"""Recorded readings drawn: a chart for each kind of figure, values as they were kept, gaps left open.

The recorded hours: charts, a file, and a switch that is the operator's alone; by page and by API.
"""

import csv
import io
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import plotly.graph_objects as go
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.checkpoint.text import dumps
from app.features.live.recorded import MOST_LINES, recorded_charts
from app.machine.recording.figures import Series
from app.main import create_app
from app.settings import Settings
from app.store.samples import Sample, Samples
from app.web.urls import API
from tests.features.asking import json_of, page, twin_of
from tests.features.dom import parse
from tests.features.workbench.charts.test_figures import painted

START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def line(source: str, figure: str, *values: float | None) -> Series:
    times = tuple(START + timedelta(seconds=10 * at) for at in range(len(values)))
    return Series(source, figure, "", times, values)


def test_figures_that_belong_together_share_a_chart_in_the_order_in_which_a_server_is_looked_at() -> None:
    found = recorded_charts(
        [
            line("nvidia/0", "power_draw_w", 400.0, 500.0),
            line("server-1", "ttft_p99_s", 0.2, 0.3),
            line("server-1", "ttft_p50_s", 0.1, 0.1),
            line("server-1", "output_tokens_per_s", 1000.0, 1200.0),
            line("server-1", "no_such_figure", 1.0),
            line("host", "cpu_percent", None),
        ]
    )
    assert [chart.id for chart in found] == ["recorded-tokens", "recorded-ttft", "recorded-power"]
    for chart in found:
        go.Figure(painted(chart.figure))
        dumps(chart.figure)


def test_values_are_in_the_unit_of_the_axis_and_gaps_stay_open() -> None:
    (chart,) = recorded_charts([line("server-1", "ttft_p50_s", 0.1, None, 0.3)])
    (trace,) = chart.figure["data"]
    assert trace["y"] == [100.0, None, 300.0]
    assert trace["connectgaps"] is False
    assert trace["x"][0] == "2026-11-29 12:00:00.000"
    assert chart.table.rows == (("server 1, median", 100.0, 200.0, 300.0, 300.0, "ms", "2026-11-29 12:00:20"),)
    assert chart.summary == "server 1, median: 100 to 300 ms, 200 in the mean, 300 at the end."


def test_more_lines_than_can_be_told_apart_are_in_the_table() -> None:
    (chart,) = recorded_charts([line(f"nvidia/{at}", "power_draw_w", 1.0) for at in range(MOST_LINES + 3)])
    assert len(chart.figure["data"]) == MOST_LINES
    assert len(chart.table.rows) == MOST_LINES + 3
    looks = {(trace["line"]["color"], trace["line"]["dash"]) for trace in chart.figure["data"]}
    assert len(looks) == MOST_LINES
    assert "3 more lines" in chart.summary


def test_nothing_recorded_is_no_chart() -> None:
    assert recorded_charts([]) == []


def test_what_never_changed_is_said_once_and_many_lines_have_room_for_their_names() -> None:
    (few,) = recorded_charts([line("server-1", "ttft_p50_s", 0.1, 0.1)])
    assert few.summary == "server 1, median: 100 ms all the time."
    (many,) = recorded_charts([line(f"nvidia/{at}", "power_draw_w", 1.0) for at in range(8)])
    assert many.figure["layout"]["height"] > few.figure["layout"]["height"]


TOKEN = "an operator's own token"
HOME = {"host": "localhost"}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, assets_dir: Path) -> FastAPI:
    settings = Settings.model_validate(
        {
            "data_dir": tmp_path_factory.mktemp("recorded"),
            "assets_dir": assets_dir,
            "record_every_s": 1.0,
            "operator_token": TOKEN,
        }
    )
    return create_app(settings)


@pytest.fixture(scope="module")
def stranger(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, client=("203.0.113.9", 1), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def recorded(app: FastAPI) -> Iterator[datetime]:
    """Ten readings of a server and a card, the last of a moment ago."""
    samples, now = Samples(app.state.services.engine), datetime.now(UTC)
    rows = []
    for at in range(10):
        taken = now - timedelta(seconds=10 - at)
        rows += [
            Sample(taken, "server-1", {"output_tokens_per_s": 1000.0 + at, "ttft_p50_s": 0.05}),
            Sample(taken, "nvidia/0", {"power_draw_w": 400.0 + at}),
        ]
    samples.add(rows)
    yield now
    samples.prune(now + timedelta(days=1))


def test_with_nothing_recorded_the_page_is_calm(stranger: TestClient) -> None:
    tree = page(stranger, "/live/recorded")
    assert "Not recording" in tree.id("recorder-title").text
    assert "Nothing was recorded in the last 1 h." in tree.text
    assert "Only the operator" in tree.text
    assert not tree.all("form")


def test_what_was_recorded_is_drawn_and_handed_out(stranger: TestClient, recorded: datetime) -> None:
    tree = page(stranger, "/live/recorded?hours=1")
    assert tree.all(id="chart-recorded-tokens")
    assert tree.all(id="chart-recorded-power")
    assert "server 1, output: 1,000 to 1,010 tokens/s" in tree.id("chart-recorded-tokens").text
    twin = json_of(stranger, twin_of(tree))
    assert {(line["source"], line["figure"]) for line in twin["series"]} == {
        ("server-1", "output_tokens_per_s"),
        ("server-1", "ttft_p50_s"),
        ("nvidia/0", "power_draw_w"),
    }
    answer = stranger.get(f"{API}/recording.csv?hours=1")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 30
    assert {row["unit"] for row in rows if row["figure"] == "power_draw_w"} == {"W"}


@pytest.mark.parametrize("hours", ["NaN", "-1", "0", "1e9", "999999", "<b>", "١"])
def test_hours_that_are_none_are_told_at_the_field(stranger: TestClient, hours: str) -> None:
    tree = page(stranger, f"/live/recorded?hours={hours}", 422)
    assert "Must be a number of hours" in tree.id("msg-hours").text
    assert stranger.get(f"{API}/recording?hours={hours}").status_code == 422
    assert stranger.get(f"{API}/recording.csv?hours={hours}").status_code == 422


def test_a_stranger_switches_nothing(stranger: TestClient) -> None:
    for answer in (
        stranger.post("/live/recorded", data={"switch": "start", "hours": "1"}),
        stranger.post(f"{API}/recording", json={"switch": "start"}),
        stranger.post(f"{API}/recording", json={"switch": "start"}, headers={"authorization": "Bearer wrong"}),
        stranger.post(f"{API}/recording", json={"switch": "start"}, headers=HOME),
    ):
        assert answer.status_code == 403
    assert stranger.get(f"{API}/recording").json()["recorder"]["is_on"] is False


def test_the_operator_records_and_stops(stranger: TestClient) -> None:
    """From elsewhere with the token. A second later there are readings of the machine."""
    bearer = {"authorization": f"Bearer {TOKEN}"}
    started = stranger.post(f"{API}/recording", json={"switch": "start", "hours": 2}, headers=bearer)
    assert started.status_code == 200
    assert started.json()["recorder"]["is_on"] is True
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not stranger.get(f"{API}/recording").json()["series"]:
        time.sleep(0.1)
    assert "host" in {line["source"] for line in stranger.get(f"{API}/recording").json()["series"]}
    assert "Recording" in page(stranger, "/live/recorded").id("recorder-title").text
    stopped = stranger.post(f"{API}/recording", json={"switch": "stop"}, headers=bearer)
    assert stopped.json()["recorder"]["is_on"] is False


def test_the_switch_of_the_page_is_for_who_sits_at_the_machine(app: FastAPI, stranger: TestClient) -> None:
    at_home = TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1), raise_server_exceptions=False)
    tree = page(at_home, "/live/recorded")
    assert tree.one("form")["action"] == "/live/recorded"
    assert at_home.post("/live/recorded", data={"switch": "sideways", "hours": ""}).status_code == 422
    refused = at_home.post("/live/recorded", data={"switch": "start", "hours": "NaN"})
    assert refused.status_code == 422
    assert parse(refused.text).id("f-hours")["value"] == "NaN"
    spoofed = at_home.post("/live/recorded", data={"switch": "start", "hours": "1"}, headers={"x-forwarded-for": "1"})
    assert spoofed.status_code == 403


def test_a_server_that_is_read_less_often_than_is_recorded_has_no_gaps(app: FastAPI, stranger: TestClient) -> None:
    samples, now = Samples(app.state.services.engine), datetime.now(UTC)
    ages = (40, 36, 32, 10, 6)  # every four seconds, but for a while
    samples.add([Sample(now - timedelta(seconds=age), "server-1", {"running": 1.0}) for age in ages])
    chart = json.loads(page(stranger, "/live/recorded?hours=0.1").id("chart-data").raw)[0]
    assert chart["figure"]["data"][0]["y"] == [1, 1, 1, None, 1, 1]
    samples.prune(now + timedelta(days=1))
