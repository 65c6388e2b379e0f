"""The process is up, and the store works."""

from starlette.testclient import TestClient


def test_a_sound_app_is_alive_and_ready(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ok"}
