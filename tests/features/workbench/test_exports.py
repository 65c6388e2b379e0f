"""Downloads: named, dated by versions, harmless in a spreadsheet."""

import csv
import io

import pytest
from starlette.testclient import TestClient

from app.features.workbench.charts.gallery import CHARTS
from app.features.workbench.export import csv_of, json_of
from app.web.figure import Chart, table_of
from tests.factories import answer_to
from tests.features.asking import BASE, OWN_CARD
from tests.features.asking import json_of as ask_json

DANGEROUS = ("=1+1", "+1", "-1", "@SUM(A1)", "\tx")


def query(**more: str) -> str:
    return "&".join(f"{k}={v}" for k, v in {**BASE, **more}.items())


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize(("extension", "kind"), [("csv", "text/csv; charset=utf-8"), ("json", "application/json")])
def test_a_download_is_named_and_not_kept(reader: TestClient, chart: str, extension: str, kind: str) -> None:
    answer = reader.get(f"/export/{chart}.{extension}?{query()}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == kind
    assert answer.headers["content-disposition"] == f'attachment; filename="tokenroof-{chart}.{extension}"'
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("chart", CHARTS)
def test_the_lines_above_say_what_it_is(reader: TestClient, chart: str) -> None:
    about = [line for line in reader.get(f"/export/{chart}.csv?{query()}").text.splitlines() if line.startswith("# ")]
    twin = ask_json(reader, f"/export/{chart}.json?{query()}")
    assert about[0] == f"# Tokenroof: {twin['title']}"
    assert about[1].startswith("# Llama-3.1-8B on ")
    assert "weights bf16, cache bf16, arithmetic bf16; 1,000 + 500 tokens; 64 users" in about[1]
    assert about[2] == f"# {twin['summary']}"
    assert f"formulas {twin['formula_version']}, catalog {twin['catalog_version']}" in about[3]
    assert len(about) == 4


@pytest.mark.parametrize("chart", CHARTS)
def test_csv_and_json_hold_the_same_table(reader: TestClient, chart: str) -> None:
    lines = reader.get(f"/export/{chart}.csv?{query()}").text.splitlines()[4:]
    columns, *rows = csv.reader(lines)
    table = ask_json(reader, f"/export/{chart}.json?{query()}")["table"]
    assert columns == table["columns"]
    assert rows == [[str(cell) for cell in row] for row in table["rows"]]
    assert all(len(row) == len(columns) for row in rows)


def test_json_carries_the_scenario_and_the_figure(reader: TestClient) -> None:
    body = ask_json(reader, f"/export/roofline.json?{query(prompt='2000')}")
    assert body["scenario"]["workload"]["prompt_tokens"] == 2000
    assert {trace["type"] for trace in body["figure"]["data"]} == {"scatter"}


def test_units_of_a_table_stay_bytes(reader: TestClient) -> None:
    """GiB is for eyes; a download has raw bytes under a header that says so."""
    decimal, binary = (reader.get(f"/export/memory.csv?{query(units=u)}").text.splitlines() for u in ("gb", "gib"))
    assert decimal[4:] == binary[4:]
    assert "GB" in decimal[2]
    assert "GiB" in binary[2]


@pytest.mark.parametrize("text", DANGEROUS)
def test_no_cell_is_taken_for_a_formula(text: str) -> None:
    chart = Chart("x", "Title", "Question?", "Summary.", {}, table_of((text, "n"), ((text, -1.5), ("plain", 2))))
    body = bytes(csv_of(chart, answer_to()).body).decode()
    columns, first, second = csv.reader(io.StringIO(body.partition("\n#")[2].split("\n", 3)[3]))
    assert columns == [f"'{text}", "n"]
    assert first == [f"'{text}", "-1.5"]
    assert second == ["plain", "2"]
    raw = bytes(json_of(chart, answer_to()).body)
    assert b"'" not in raw.partition(b'"table"')[2]


@pytest.mark.parametrize("name", ["=HYPERLINK(1)", "a,b", 'say "hi"', "@x", "x\u2028# y"])
def test_a_name_stays_inside_its_line(reader: TestClient, name: str) -> None:
    answer = reader.get("/export/memory.csv", params={**BASE, **OWN_CARD, "hw_name": name})
    lines = answer.text.split("\n")
    assert answer.status_code == 200
    assert [line.startswith("# ") for line in lines[:5]] == [True] * 4 + [False]
    assert lines[4].startswith("part,")


@pytest.mark.parametrize("path", ["/export/none.csv", "/export/roofline.xls", "/export/roofline.png"])
def test_there_are_no_other_downloads(reader: TestClient, path: str) -> None:
    assert reader.get(f"{path}?{query()}").status_code == 404


def test_a_download_of_a_wrong_scenario_is_refused(reader: TestClient) -> None:
    assert reader.get(f"/export/roofline.csv?{query(prompt='0')}").status_code == 422
    assert reader.get("/export/roofline.csv").status_code == 422
