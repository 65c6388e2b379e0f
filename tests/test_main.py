"""The wiring: apps that share nothing, and an app that cannot be made."""

from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.main import create_app, create_app_from_environment
from app.settings import Settings
from app.web.assets import AssetsMissingError
from app.web.urls import API
from tests.factories import scenario_document

LINKS = f"{API}/configurations"
SAVE: dict[str, Any] = {"title": "Only here", "scenario": scenario_document()}


def test_two_apps_in_one_process_share_nothing(tmp_path: Path, assets_dir: Path) -> None:
    first = create_app(Settings(data_dir=tmp_path / "first", assets_dir=assets_dir))
    second = create_app(
        Settings(
            data_dir=tmp_path / "second",
            assets_dir=assets_dir,
            hsts=True,
            allowed_hosts=("roof.example",),
            max_body_bytes=1_024,
            public_url="https://roof.example",
            link_expiry_days=7,
            allow_unexpiring_links=True,
        )
    )
    with TestClient(first) as one, TestClient(second) as other:
        here = one.post(LINKS, json=SAVE).json()
        there = other.post(LINKS, json=SAVE).json()
        assert one.get(f"{LINKS}/{here['slug']}").status_code == 200
        assert other.get(f"{LINKS}/{there['slug']}").status_code == 200
        assert there["url"].startswith("https://roof.example/c/")
        assert here["expires_at"] > there["expires_at"]
        assert "strict-transport-security" in other.get("/").headers
        assert "strict-transport-security" not in one.get("/").headers
        for name, client in (("one", one), ("other", other)):
            foreign = client.get("/healthz", headers={"Host": "roof.example"})
            assert foreign.status_code == (421 if name == "one" else 200)
            padded = b" " * 2_000 + b"{}"
            answer = client.post(f"{API}/evaluate", content=padded, headers={"content-type": "application/json"})
            assert answer.status_code == (422 if name == "one" else 413)
        assert "never" in other.get("/").text
        for service in ("engine", "sampler", "settings"):
            assert getattr(first.state.services, service) is not getattr(second.state.services, service)


def test_a_link_of_one_app_is_unknown_to_another(tmp_path: Path, assets_dir: Path) -> None:
    first, second = (
        TestClient(create_app(Settings(data_dir=tmp_path / name, assets_dir=assets_dir)), raise_server_exceptions=False)
        for name in ("first", "second")
    )
    slug = first.post(LINKS, json=SAVE).json()["slug"]
    assert first.get(f"{LINKS}/{slug}").status_code == 200
    assert second.get(f"{LINKS}/{slug}").status_code == 404


def test_an_app_on_the_same_folder_finds_its_links_again(settings: Settings) -> None:
    with TestClient(create_app(settings)) as before:
        slug = before.post(LINKS, json=SAVE).json()["slug"]
    with TestClient(create_app(settings)) as after:
        assert after.get(f"{LINKS}/{slug}").json()["title"] == "Only here"


def test_without_assets_no_app_is_made_and_no_database_either(tmp_path: Path) -> None:
    with pytest.raises(AssetsMissingError, match="make assets"):
        create_app(Settings(data_dir=tmp_path / "data", assets_dir=tmp_path / "none"))
    assert not (tmp_path / "data").exists()


def test_the_servers_app_is_that_of_the_environment(
    tmp_path: Path, assets_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENROOF_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TOKENROOF_ASSETS_DIR", str(assets_dir))
    monkeypatch.setenv("TOKENROOF_HSTS", "1")
    made = create_app_from_environment()
    assert made.state.services.settings.hsts is True
    assert (tmp_path / "data" / "tokenroof.sqlite3").exists()


def test_the_folder_of_the_database_may_be_out_of_reach(tmp_path: Path, assets_dir: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    client = TestClient(create_app(Settings(data_dir=in_the_way, assets_dir=assets_dir)))
    assert client.get("/readyz").status_code == 503
    assert client.get("/").status_code == 200


def test_the_frameworks_own_pages_are_off(client: TestClient) -> None:
    for path in ("/redoc", "/openapi.json", "/docs/oauth2-redirect"):
        assert client.get(path).status_code == 404
    assert "cdn" not in client.get("/docs").text


def test_large_answers_are_compressed_and_small_ones_not(client: TestClient) -> None:
    large = client.get("/", headers={"Accept-Encoding": "gzip"})
    assert large.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in large.headers["vary"]
    assert "content-encoding" not in client.get("/healthz", headers={"Accept-Encoding": "gzip"}).headers


def test_the_lifespan_closes_what_was_opened(app: FastAPI) -> None:
    with TestClient(app) as client:
        assert client.get("/readyz").status_code == 200
        assert app.state.services.engine.pool.checkedin() > 0
    assert app.state.services.engine.pool.checkedin() == 0
