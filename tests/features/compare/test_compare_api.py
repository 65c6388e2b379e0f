"""A comparison by HTTP: the documented form, whole evaluations, and refusals that name the plan and the field."""

from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from app.checkpoint.text import loads
from app.features.compare.routes import ComparisonAnswer
from app.web.urls import API
from tests.compared_plans import BASE, FP8, H200, UNFIT
from tests.features.problems import paths

COMPARE = f"{API}/compare"


def address(*texts: str, **view: str) -> str:
    return f"{COMPARE}?{urlencode([*(('s', text) for text in texts), *view.items()])}"


def told(client: TestClient, *texts: str, **view: str) -> dict[str, Any]:
    answer = client.get(address(*texts, **view))
    assert answer.status_code == 200, answer.text[:500]
    body: dict[str, Any] = loads(answer.content)
    return body


@pytest.mark.parametrize("texts", [(BASE,), (BASE, BASE), (BASE, FP8, H200, UNFIT)])
def test_the_answer_has_the_documented_form(reader: TestClient, texts: tuple[str, ...]) -> None:
    body = told(reader, *texts, equal="hide", units="gib")
    read = ComparisonAnswer.model_validate(body)
    for part in ("baseline", "differences", "results", "equal_requests"):
        assert read.model_dump(mode="json")[part] == body[part]
    assert [set(plan) for plan in body["plans"]] == [{"letter", "name", "href", "saved", "evaluation"}] * len(texts)


def test_each_evaluation_is_the_one_of_its_own_address(reader: TestClient) -> None:
    for plan, text in zip(told(reader, BASE, UNFIT)["plans"], (BASE, UNFIT), strict=True):
        alone = reader.get(f"{API}/evaluate?{text}").json()
        assert plan["evaluation"] == alone
        assert reader.get(plan["href"].replace("/?", f"{API}/evaluate?")).json() == alone


def test_rows_refer_to_the_baseline(reader: TestClient) -> None:
    body = told(reader, BASE, H200, FP8, base="2")
    assert body["baseline"] == 2
    for row in body["results"]:
        reference = row["values"][1]["mid"]
        for place, value in enumerate(row["values"]):
            assert row["ratios"][place] == pytest.approx(value["mid"] / reference)
        assert row["verdicts"][1] == "baseline"
    assert [one["path"] for one in body["differences"]] == ["hardware.id", "precision.weights", "precision.compute"]
    assert body["differences"][0]["values"] == ["h100-sxm-80gb", "h200-sxm", "h100-sxm-80gb"]


def test_whether_the_requests_are_alike_is_told(reader: TestClient) -> None:
    assert told(reader, BASE, f"{BASE}&ttft=1")["equal_requests"]
    assert not told(reader, BASE, f"{BASE}&out=5")["equal_requests"]


@pytest.mark.parametrize(
    ("texts", "view", "named"),
    [
        ((), {}, ["s"]),
        (("",), {}, ["s"]),
        (("hello", BASE), {}, ["s.0"]),
        ((BASE, "model=llama-3.1-8b&hw=h10&prompt=many"), {}, ["s.1.workload.prompt_tokens", "s.1.hardware.id"]),
        ((BASE, f"{BASE}&colour=red"), {}, ["s.1.colour"]),
        ((BASE,), {"base": "2"}, ["base"]),
        ((BASE,), {"base": "NaN", "equal": "maybe", "colour": "red"}, ["base", "equal", "colour"]),
        ((BASE,) * 5, {}, ["s.4"]),
        (("/c/00000000000000000000000000",), {}, ["s.0"]),
        (("http://127.0.0.1:1/?model=none&hw=none",), {}, ["s.0.model.id", "s.0.hardware.id"]),
    ],
)
def test_what_is_not_right_is_refused_at_its_place(
    reader: TestClient, texts: tuple[str, ...], view: dict[str, str], named: list[str]
) -> None:
    assert paths(reader.get(address(*texts, **view))) == named


def test_a_saved_link_is_a_plan_and_the_answer_is_private(client: TestClient) -> None:
    scenario = {"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "h200-sxm"}}
    made = client.post(f"{API}/configurations", json={"title": "Of record", "notes": "", "scenario": scenario}).json()
    answer = client.get(address(made["url"], BASE))
    first, second = answer.json()["plans"]
    assert (first["name"], first["saved"]) == ("Of record", f"/c/{made['slug']}")
    assert second["saved"] is None
    assert answer.headers["cache-control"] == "private, no-store"


TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from([BASE, FP8, UNFIT, "/c/x", "", "model=", "hw=custom", f"{BASE}&batch=0", f"{BASE}&config={{"]),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TEXTS, max_size=6), st.one_of(st.none(), st.text(max_size=3), st.sampled_from(["1", "2", "4"])))
def test_no_query_is_a_server_error(reader: TestClient, texts: list[str], base: str | None) -> None:
    items = [("s", text.encode("utf-8", "replace").decode()) for text in texts]
    items += [] if base is None else [("base", base.encode("utf-8", "replace").decode())]
    api, page = (reader.get(f"{path}?{urlencode(items)}") for path in (COMPARE, "/compare"))
    assert page.status_code in (200, 422)
    assert api.status_code == (page.status_code if any(text.strip() for text in texts) else 422)
