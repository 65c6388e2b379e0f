"""An error that nobody foresaw: a calm answer with an id, and nothing of the cause, on every route."""

import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.store.tokens import new_token
from app.web.problem import MEDIA_TYPE
from app.web.urls import API
from tests.factories import scenario_document

SECRET = "the-secret-cause"
QUERY = "model=llama-3.1-8b&hw=h100-sxm-80gb"
FORM = {"query": QUERY, "title": "t", "edit_token": "t"}
SAVE = {"title": "t", "scenario": scenario_document()}
LINK = f"{API}/configurations/{new_token()}"
TOKEN = {"X-Edit-Token": new_token()}
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
    ("GET", f"/c/{new_token()}", {}),
    ("POST", f"/c/{new_token()}/edit", {"data": FORM}),
    ("POST", f"/c/{new_token()}/revoke", {"data": FORM}),
    ("POST", f"/c/{new_token()}/duplicate", {}),
    ("POST", f"{API}/import", {"json": {"config": {"model_type": "llama"}}}),
    ("GET", "/models", {}),
    ("GET", "/models/llama-3.1-8b", {}),
    ("GET", "/models/custom?from=llama-3.1-8b", {}),
    ("GET", "/import?hub=owner/name", {}),
    ("GET", "/hardware/custom?from=h100-sxm-80gb", {}),
    ("GET", "/hardware", {}),
    ("GET", "/hardware/h100-sxm-80gb", {}),
    ("GET", "/live", {}),
    ("GET", "/live/stream", {}),
]


class Broken:
    """Stands in the place of the services; whatever is asked of it fails."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{SECRET} {name}")


@pytest.fixture(scope="module")
def broken(shared_app: FastAPI) -> Iterator[TestClient]:
    with TestClient(shared_app, raise_server_exceptions=False) as client:
        sound = shared_app.state.services
        shared_app.state.services = Broken()
        yield client
        shared_app.state.services = sound


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


def test_the_next_request_is_answered_again(calculator: TestClient) -> None:
    assert calculator.get("/healthz").status_code == 200
