"""HEAD answers as GET does, without the body."""

import pytest
from starlette.testclient import TestClient


@pytest.mark.parametrize("path", ["/", "/live", "/docs", "/healthz", "/api/v1/models", "/nope", "/?batch=x"])
def test_head_is_get_without_its_body(client: TestClient, path: str) -> None:
    asked, got = client.head(path), client.get(path)
    assert asked.status_code == got.status_code
    assert asked.content == b""
    assert asked.headers["content-type"] == got.headers["content-type"]
    assert asked.headers["content-security-policy"] == got.headers["content-security-policy"]


def test_head_of_what_only_takes_a_post_is_refused(client: TestClient) -> None:
    assert client.head("/api/v1/sweep").status_code == 405
