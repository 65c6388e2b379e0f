"""One line a request, without an address; and what happens when nobody foresaw an error."""

import json
import logging
from typing import Any

import pytest
from starlette.responses import PlainTextResponse, Response
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from app.web.middleware import RequestLog


def failure(scope: Scope, request_id: str) -> Response:
    return PlainTextResponse(f"logged as {request_id}", 500)


async def sound(scope: Scope, receive: Receive, send: Send) -> None:
    scope["route"] = type("Route", (), {"path": "/c/{slug}"})()
    await PlainTextResponse("fine")(scope, receive, send)


async def broken(scope: Scope, receive: Receive, send: Send) -> None:
    raise RuntimeError("the cause")


async def broken_midway(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise RuntimeError("the cause")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "tokenroof.request")
    return caplog


def line_of(log: pytest.LogCaptureFixture) -> dict[str, Any]:
    (record,) = [r for r in log.records if r.name == "tokenroof.request" and r.levelno == logging.INFO]
    line: dict[str, Any] = json.loads(record.message)
    return line


def test_a_line_names_the_route_and_not_the_address(lines: pytest.LogCaptureFixture) -> None:
    answer = TestClient(RequestLog(sound, failure)).get(
        "/c/secret-slug?secret=query", headers={"X-Edit-Token": "secret"}
    )
    line = line_of(lines)
    assert line.pop("ms") >= 0
    assert line == {"id": answer.headers["x-request-id"], "method": "GET", "route": "/c/{slug}", "status": 200}
    ours = [record for record in lines.records if record.name.startswith("tokenroof")]
    assert "secret" not in "".join(record.getMessage() for record in ours)


def test_an_unforeseen_error_is_answered_and_logged_under_its_id(lines: pytest.LogCaptureFixture) -> None:
    answer = TestClient(RequestLog(broken, failure)).get("/")
    assert answer.status_code == 500
    assert answer.text == f"logged as {answer.headers['x-request-id']}"
    assert line_of(lines)["status"] == 500
    (record,) = [record for record in lines.records if record.levelno == logging.ERROR]
    assert answer.headers["x-request-id"] in record.message
    assert record.exc_info is not None


def test_an_error_behind_the_start_of_an_answer_is_left_to_the_server(lines: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RuntimeError, match="the cause"):
        TestClient(RequestLog(broken_midway, failure)).get("/")
    assert line_of(lines)["status"] == 200


def test_ids_differ(lines: pytest.LogCaptureFixture) -> None:
    client = TestClient(RequestLog(sound, failure))
    ids = {client.get("/").headers["x-request-id"] for _ in range(20)}
    assert len(ids) == 20


def test_what_is_no_request_passes(lines: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    with TestClient(RequestLog(app, failure)):
        pass
    assert seen == ["lifespan"]
    assert not lines.records


def test_a_refusal_is_no_error_of_the_server(client: TestClient, lines: pytest.LogCaptureFixture) -> None:
    for path in ("/c/nope", "/nope", "/api/v1/models/nope", "/api/v1/evaluate", "/export/nope.csv", "/?model=nope"):
        client.get(path)
    assert not [record for record in lines.records if record.levelno >= logging.WARNING]
