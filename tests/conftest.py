"""Fixtures for tests that need the application: an app of one's own, a client, a running server."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import hypothesis
import pytest
from fastapi import FastAPI
from sqlalchemy import Engine
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import ROOT, Settings
from app.store.database import create_store_engine
from app.store.disk import exclusive
from app.web.asset_build import build_assets
from tests.running import running

BUILD_TIMEOUT_S = 300

# The same examples in every run, and no clock: what fails, fails for everyone and not only on a busy machine.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def assets_dir() -> Path:
    """The built browser assets, with what the browser tests need beside them."""
    folder = ROOT / "var" / "assets"
    folder.parent.mkdir(exist_ok=True)
    # Test processes that run side by side share the folder: the first builds, the others find it built.
    with exclusive(folder.with_name("assets.lock"), BUILD_TIMEOUT_S):
        build_assets(folder, dev=True)
    return folder


@pytest.fixture(scope="session")
def shared_app(tmp_path_factory: pytest.TempPathFactory, assets_dir: Path) -> FastAPI:
    """One app for all tests that store nothing and change nothing in it."""
    return create_app(Settings(data_dir=tmp_path_factory.mktemp("shared"), assets_dir=assets_dir))


@pytest.fixture(scope="session")
def reader(shared_app: FastAPI) -> Iterator[TestClient]:
    """A client of that app; a test that saves, or needs settings of its own, takes `client`."""
    with TestClient(shared_app, raise_server_exceptions=False) as started:
        yield started
        assert not started.cookies, "a test left a cookie with the shared client"
    with closing(sqlite3.connect(shared_app.state.services.settings.database_path)) as connection:
        for table in ("configurations", "shared_documents", "live_samples"):
            saved = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert saved == (0,), f"a test left a row in {table} of the shared app"


@pytest.fixture(scope="session")
def calculator(tmp_path_factory: pytest.TempPathFactory, assets_dir: Path) -> Iterator[TestClient]:
    """A client of one app for the tests that do not mind what others have saved in it."""
    app = create_app(Settings(data_dir=tmp_path_factory.mktemp("calculator"), assets_dir=assets_dir))
    with TestClient(app, raise_server_exceptions=False) as started:
        yield started


@pytest.fixture
def settings(tmp_path: Path, assets_dir: Path) -> Settings:
    """Settings of an app with a database of its own."""
    return Settings(data_dir=tmp_path / "data", assets_dir=assets_dir)


@pytest.fixture(autouse=True)
def _closed_databases(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Closes the database of an app that a test makes and never starts; a started one closes its own."""
    engines: list[Engine] = []

    def recorded(path: Path) -> Engine:
        engines.append(create_store_engine(path))
        return engines[-1]

    monkeypatch.setattr("app.main.create_store_engine", recorded)
    yield
    for engine in engines:
        engine.dispose()


@pytest.fixture
def app(settings: Settings) -> FastAPI:
    """An app for the settings."""
    return create_app(settings)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    """A client of the app. A server error is an answer, not an exception, as it is for a user."""
    with TestClient(app, raise_server_exceptions=False) as started:
        yield started


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, assets_dir: Path) -> Iterator[str]:
    """The address of a server in a process of its own."""
    with running(tmp_path_factory.mktemp("server"), assets_dir) as found:
        yield found.address
