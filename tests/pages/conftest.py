"""A reader: a client of one app for all tests that store nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory, assets_dir: Path) -> Iterator[TestClient]:
    """A client of an app that all tests of this folder share."""
    app = create_app(Settings(data_dir=tmp_path_factory.mktemp("reader"), assets_dir=assets_dir))
    with TestClient(app, raise_server_exceptions=False) as started:
        yield started
