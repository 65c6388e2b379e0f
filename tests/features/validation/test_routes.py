"""Predicted against measured by HTTP: the documented form, the page's names, and refusals as everywhere.

The page of the published deployment: its figures are those of the comparison, and lead on.
"""

from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from app.calc.quantity import significant
from app.catalog.calibration import load_cross_validated
from app.checkpoint.text import loads
from app.features.validation.errors import SLICES
from app.features.validation.production import production, published
from app.features.validation.routes import ValidationAnswer
from app.web.urls import API
from tests.factories import shipped_catalog
from tests.features.problems import paths, problem

CATALOG = shipped_catalog()
COMPARED = {row.id: row for row in CATALOG.measurements if row.is_compared}
LIST = f"{API}/validation"


def told(client: TestClient, query: str = "") -> dict[str, Any]:
    answer = client.get(f"{LIST}?{query}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = loads(answer.content)
    return body


@pytest.mark.parametrize("query", ["", "by=model&engine=vllm", "scored=no", "q=nothing-is-called-so", "page=99"])
def test_the_answer_has_the_documented_form(calculator: TestClient, query: str) -> None:
    body = told(calculator, query)
    assert ValidationAnswer.model_validate(body, strict=True).model_dump() == body


def test_every_compared_row_is_told_once_page_by_page(calculator: TestClient) -> None:
    first = told(calculator)
    assert (first["total"], first["found"], first["gathered"]) == (
        len(COMPARED),
        len(COMPARED),
        len(CATALOG.measurements),
    )
    ids = [row["id"] for number in range(first["pages"]) for row in told(calculator, f"page={number + 1}")["rows"]]
    assert len(ids) == len(set(ids))
    assert set(ids) == set(COMPARED)


def test_a_row_carries_its_source_and_its_predictions(calculator: TestClient) -> None:
    blind = load_cross_validated()
    for row in told(calculator, "metric=ttft_s")["rows"][:10]:
        measurement = COMPARED[row["id"]]
        assert (row["source"], row["measured"]) == (measurement.source, measurement.value)
        assert (row["cross_validated"], row["unseen"]) == (blind[row["id"]].held_out, blind[row["id"]].unseen)
        assert row["predicted_over_measured"] == pytest.approx(row["cross_validated"] / row["measured"])
        assert row["speed_ratio"] == pytest.approx(row["measured"] / row["cross_validated"])
        whole = calculator.get(row["evaluate"]).json()
        assert whole["serving"]["ttft_s"]["mid"] == row["in_sample"]


@pytest.mark.parametrize("by", SLICES)
def test_slices_add_up(calculator: TestClient, by: str) -> None:
    body = told(calculator, f"by={by}")
    scored = sum(row.is_scored for row in COMPARED.values())
    assert body["errors_by"] == by
    assert sum(one["measurements"] for one in body["slices"]) == body["errors"]["measurements"] == scored
    mean = sum(one["measurements"] * one["cross_validated"]["mean"] for one in body["slices"]) / scored
    assert mean == pytest.approx(body["errors"]["cross_validated"]["mean"])
    assert body["not_scored"] == len(COMPARED) - scored


def test_the_worst_groups_can_be_asked_for(calculator: TestClient) -> None:
    for groups in told(calculator)["worst"].values():
        top = groups[0]
        own = told(calculator, urlencode(top["query"]))
        assert own["errors"]["measurements"] == top["measurements"]
        assert own["errors"]["cross_validated"]["mean"] == pytest.approx(top["mean_error"])
        assert top["sentence"].startswith(top["label"])


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("metric=speed", ["metric"]),
        ("by=colour&page=0", ["by", "page"]),
        ("accelerator=h100&accelerator=h100", ["accelerator"]),
        ("sort=up&colour=red", ["colour", "sort"]),
        ("page=1&page=2", ["page"]),
        ("min_measured=1", ["min_measured"]),
    ],
)
def test_what_is_not_right_is_refused_at_its_name(calculator: TestClient, query: str, named: list[str]) -> None:
    assert paths(calculator.get(f"{LIST}?{query}")) == named


def test_an_absurd_query_is_refused(calculator: TestClient) -> None:
    problem(calculator.get(f"{LIST}?{'q=a&' * 300}"), 422)


NAMES = st.sampled_from(["q", "metric", "engine", "accelerator", "model", "by", "sort", "page", "scored", "x"])
VALUES = st.one_of(st.text(max_size=20), st.sampled_from(["vllm", "ttft_s", "-factor", "2", "0", "no", "engine"]))


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(NAMES, VALUES), min_size=1, max_size=4))
def test_no_query_is_a_server_error(calculator: TestClient, items: list[tuple[str, str]]) -> None:
    query = urlencode([(name, value.encode("utf-8", "replace").decode()) for name, value in items])
    api, page = calculator.get(f"{LIST}?{query}"), calculator.get(f"/validation?{query}")
    assert api.status_code == page.status_code
    assert api.status_code in (200, 422)


def test_published_and_predicted_stand_side_by_side(reader: TestClient) -> None:
    page = reader.get("/production")
    assert page.status_code == 200
    for side in production(shipped_catalog()).sides:
        for value in (side.published, side.expected, side.ratio, side.ceiling):
            assert significant(value, 3) in page.text
        assert side.explanation.substituted in page.text
    assert published().source in page.text


def test_it_leads_to_the_workbench_and_to_its_json(reader: TestClient) -> None:
    page = reader.get("/production").text
    assert 'href="/?v=1&amp;model=deepseek-v3' in page
    assert "/api/v1/evaluate?" in page
    assert "/optimizations?" in page
