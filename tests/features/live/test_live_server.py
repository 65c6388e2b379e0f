"""Naming a server on the live page: where it is allowed, what is refused at the field, and where the address stays."""

import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from app.features.live.stream import COOKIE
from app.machine.probes.reading import Absence
from app.main import create_app
from app.settings import Settings
from tests.features.asking import page
from tests.features.dom import parse


@pytest.fixture
def permissive(settings: Settings) -> Iterator[TestClient]:
    """A client of an app on which people may name servers of this machine."""
    with TestClient(create_app(settings.model_copy(update={"typed_servers": "local"}))) as client:
        yield client


@pytest.mark.parametrize(
    "address",
    ["", "http://169.254.169.254/", "http://10.0.0.1:8000", "file:///etc/passwd", "http://a:b@127.0.0.1:8000"],
)
def test_an_address_that_may_not_be_read_is_told_at_the_field_and_kept(permissive: TestClient, address: str) -> None:
    answer = permissive.post("/live/server", data={"address": address, "query": "model=qwen3-14b&hw=h200-sxm"})
    assert answer.status_code == 422
    tree = parse(answer.text)
    assert tree.id("msg-address").text
    assert tree.id("f-address")["value"] == address
    assert tree.id("f-model").one("option", selected="")["value"] == "qwen3-14b"
    assert COOKIE not in permissive.cookies


def test_a_named_server_is_in_a_cookie_and_in_nothing_else(permissive: TestClient) -> None:
    """Nobody listens there, which is told calmly."""
    address = "http://127.0.0.1:9999"
    answer = permissive.post("/live/server", data={"address": address, "query": ""}, follow_redirects=False)
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/live"))
    shown = page(permissive, "/live")
    assert Absence.UNREACHABLE.message in shown.id("typed").text
    assert "127.0.0.1:9999" not in shown.raw
    assert shown.id("f-address")["value"] == address, "its own browser sees which it is"
    assert re.search("Forget it", shown.raw)
    permissive.post("/live/server", data={"forget": "1", "query": ""})
    assert not page(permissive, "/live").all(id="typed")
