"""HEAD answers as GET does, without the body."""

import pytest
from starlette.testclient import TestClient


@pytest.mark.parametrize("path", ["/", "/live", "/learn", "/docs", "/healthz", "/api/v1/models", "/nope", "/?batch=x"])
def test_head_is_get_without_its_body(reader: TestClient, path: str) -> None:
    asked, got = reader.head(path), reader.get(path)
    assert asked.status_code == got.status_code
    assert asked.content == b""
    assert asked.headers["content-type"] == got.headers["content-type"]
    assert asked.headers["content-security-policy"] == got.headers["content-security-policy"]


def test_head_of_what_only_takes_a_post_is_refused(reader: TestClient) -> None:
    assert reader.head("/api/v1/sweep").status_code == 405
