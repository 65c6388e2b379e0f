"""The process is up, and the store works or says why not.

Reports of the browser about the content security policy: logged in a line, without secrets, never an error.
"""

import json
import logging
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.web.urls import API
from tests.factories import scenario_document
from tests.features.problems import problem

QUERY = "model=llama-3.1-8b&hw=h100-sxm-80gb"


@pytest.fixture
def damaged(tmp_path: Path, assets_dir: Path) -> TestClient:
    """A client of an app whose database is no database."""
    settings = Settings(data_dir=tmp_path, assets_dir=assets_dir)
    settings.database_path.write_bytes(b"no database at all " * 500)
    return TestClient(create_app(settings), raise_server_exceptions=False)


def test_a_sound_app_is_alive_and_ready(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ok"}


def test_readiness_notices_a_file_that_went_away(client: TestClient, settings: Settings) -> None:
    settings.database_path.unlink()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["status"] == "unavailable"
    assert client.get("/healthz").status_code == 200


def test_without_a_sound_database_the_product_still_calculates(damaged: TestClient) -> None:
    assert damaged.get("/healthz").status_code == 200
    not_ready = damaged.get("/readyz")
    assert not_ready.status_code == 503
    assert not_ready.json()["status"] == "unavailable"
    assert damaged.get("/").status_code == 200
    assert damaged.get("/live").status_code == 200
    evaluated = damaged.post(f"{API}/evaluate", json=scenario_document())
    assert evaluated.json()["rule_of_thumb"]["kv_capacity_users"] > 0


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
def test_without_a_sound_database_links_are_not_available(damaged: TestClient, method: str) -> None:
    address = f"{API}/configurations" + ("" if method == "POST" else "/0123456789abcdefghjkmnpqrs")
    body = json.dumps({"title": "t", "scenario": scenario_document()})
    headers = {"X-Edit-Token": "t", "content-type": "application/json"}
    answer = damaged.request(method, address, content=body, headers=headers)
    assert "operator" in problem(answer, 503)["detail"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/save"), ("GET", "/c/x"), ("POST", "/c/x/edit"), ("POST", "/c/x/revoke"), ("POST", "/c/x/duplicate")],
)
def test_without_a_sound_database_the_pages_say_so(damaged: TestClient, method: str, path: str) -> None:
    form = {"query": QUERY, "title": "t", "edit_token": "t"}
    answer = damaged.request(method, path, data=form if method == "POST" else None)
    assert answer.status_code == 503
    assert "the database needs its operator" in answer.text


def test_the_damaged_file_is_left_as_it_was(damaged: TestClient, tmp_path: Path) -> None:
    damaged.get("/readyz")
    assert (tmp_path / "tokenroof.sqlite3").read_bytes() == b"no database at all " * 500


SECRET = "4aybshxstwa0025bz3pd2mfvzr"


def test_a_report_is_logged_without_the_path(reader: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    report = {"csp-report": {"effective-directive": "img-src", "blocked-uri": f"http://testserver/c/{SECRET}"}}
    with caplog.at_level(logging.WARNING, "tokenroof.policy"):
        assert reader.post("/csp-report", content=json.dumps(report)).status_code == 204
    (record,) = [r for r in caplog.records if r.name == "tokenroof.policy"]
    assert json.loads(record.getMessage().removeprefix("policy breach ")) == {
        "directive": "img-src",
        "blocked": "testserver",
    }


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b'{"csp-report": 1}',
        b'{"csp-report": {}}',
        b'{"csp-report": {"blocked-uri": "http://[half"}}',
        b'{"csp-report": {"blocked-uri": ["x"], "effective-directive": {"a": "\\n"}}}',
        b"\xff\xfe",
    ],
)
def test_whatever_is_sent_the_answer_is_the_same(reader: TestClient, body: bytes) -> None:
    assert reader.post("/csp-report", content=body).status_code == 204
