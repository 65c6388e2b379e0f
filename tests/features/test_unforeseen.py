"""An error that nobody foresaw: a calm answer with an id, and nothing of the cause, on every route."""

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.web.problem import MEDIA_TYPE
from app.web.urls import API
from tests.factories import scenario_document

SECRET = "the-secret-cause"
SLUG = "0123456789abcdefghjkmnpqrs"  # a fixed one: each test process must give the tests the same names
QUERY = "model=llama-3.1-8b&hw=h100-sxm-80gb"
FORM = {"query": QUERY, "title": "t", "edit_token": "t"}
SAVE = {"title": "t", "scenario": scenario_document()}
LINK = f"{API}/configurations/{SLUG}"
TOKEN = {"X-Edit-Token": SLUG[::-1]}
ROUTES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", f"{API}/evaluate", {"json": scenario_document()}),
    ("GET", f"{API}/evaluate?{QUERY}", {}),
    ("POST", f"{API}/evaluate/batch", {"json": {"scenarios": [scenario_document()]}}),
    ("POST", f"{API}/sweep", {"json": {"scenario": scenario_document(), "axes": {}}}),
    ("GET", f"{API}/models", {}),
    ("GET", f"{API}/models/llama-3.1-8b", {}),
    ("GET", f"{API}/hardware", {}),
    ("GET", f"{API}/hardware/h100-sxm-80gb", {}),
    ("GET", f"{API}/engines", {}),
    ("GET", f"{API}/probes", {}),
    ("GET", f"{API}/probes/stream", {}),
    ("POST", f"{API}/configurations", {"json": SAVE}),
    ("GET", LINK, {}),
    ("PUT", LINK, {"json": SAVE, "headers": TOKEN}),
    ("DELETE", LINK, {"headers": TOKEN}),
    ("GET", "/readyz", {}),
    ("GET", "/", {}),
    ("GET", f"/export/roofline.csv?{QUERY}", {}),
    ("POST", "/save", {"data": FORM}),
    ("GET", f"/c/{SLUG}", {}),
    ("POST", f"/c/{SLUG}/edit", {"data": FORM}),
    ("POST", f"/c/{SLUG}/revoke", {"data": FORM}),
    ("POST", f"/c/{SLUG}/duplicate", {}),
    ("POST", f"{API}/import", {"json": {"config": {"model_type": "llama"}}}),
    ("GET", "/models", {}),
    ("GET", "/models/llama-3.1-8b", {}),
    ("GET", "/models/custom?from=llama-3.1-8b", {}),
    ("GET", "/import?hub=owner/name", {}),
    ("GET", "/hardware/custom?from=h100-sxm-80gb", {}),
    ("GET", "/hardware", {}),
    ("GET", "/hardware/h100-sxm-80gb", {}),
    ("GET", "/live", {}),
    ("GET", "/learn", {}),
    ("GET", f"{API}/learn", {}),
    ("GET", "/live/stream", {}),
    ("GET", "/live/recorded", {}),
    ("POST", "/live/recorded", {"data": {"switch": "stop", "hours": "1"}}),
    ("POST", "/live/snapshots", {"data": FORM}),
    ("GET", f"/live/s/{SLUG}", {}),
    ("POST", "/live/server", {"data": {"address": "http://127.0.0.1:8000", "query": ""}}),
    ("POST", "/live/roofs", {}),
    ("GET", f"{API}/roofs", {}),
    ("GET", f"{API}/recording", {}),
    ("POST", f"{API}/snapshots", {"json": {"title": "A"}}),
    ("GET", f"{API}/snapshots/{SLUG}", {}),
    ("GET", f"/calibrations/{SLUG}", {}),
    ("GET", "/benchmarks", {}),
]


class Broken:
    """Stands in the place of the services; whatever is asked of it fails."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{SECRET} {name}")


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory, assets_dir: Path) -> Iterator[TestClient]:
    app = create_app(Settings(data_dir=tmp_path_factory.mktemp("broken"), assets_dir=assets_dir))
    app.state.services = Broken()
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize(("method", "path", "more"), ROUTES, ids=lambda value: str(value)[:60])
def test_every_route_answers_calmly(
    broken: TestClient, caplog: pytest.LogCaptureFixture, method: str, path: str, more: dict[str, Any]
) -> None:
    caplog.set_level(logging.INFO, "tokenroof")
    answer = broken.request(method, path, **more)
    assert answer.status_code == 500
    request_id = answer.headers["x-request-id"]
    assert request_id in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    for told in (SECRET, "Traceback", "RuntimeError", "services", "app/", ".py"):
        assert told not in re.sub(r"/assets/[^\"]*", "", answer.text)
    if path.startswith((API, "/readyz")):
        assert answer.headers["content-type"] == MEDIA_TYPE
        assert answer.json() == {
            "type": "about:blank",
            "title": "Internal Server Error",
            "status": 500,
            "detail": f"Something went wrong here; it is logged as {request_id}.",
        }
    else:
        assert answer.headers["content-type"].startswith("text/html")
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert SECRET in caplog.text
    (line,) = [record.message for record in caplog.records if record.levelno == logging.INFO]
    assert json.loads(line)["status"] == 500
    assert json.loads(line)["id"] == request_id


def test_the_next_request_is_answered_again(broken: TestClient) -> None:
    assert broken.get("/").status_code == 500
    assert broken.get("/healthz").status_code == 200
