"""Reports of the browser about the content security policy: logged in a line, without secrets, never an error."""

import json
import logging

import pytest
from starlette.testclient import TestClient

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
