"""An app to calculate with, and links to save with."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.web.urls import API
from tests.factories import scenario_document

LINKS = f"{API}/configurations"


@pytest.fixture(scope="session")
def calculator(tmp_path_factory: pytest.TempPathFactory, assets_dir: Path) -> Iterator[TestClient]:
    """A client of one app for the tests that do not mind what others have saved in it."""
    app = create_app(Settings(data_dir=tmp_path_factory.mktemp("calculator"), assets_dir=assets_dir))
    with TestClient(app, raise_server_exceptions=False) as started:
        yield started


@pytest.fixture
def link(client: TestClient) -> dict[str, Any]:
    """A fresh link to the reference case: slug, url, edit token, expiry."""
    made = client.post(LINKS, json={"title": "Eight billion", "notes": "on one", "scenario": scenario_document()})
    assert made.status_code == 201
    created: dict[str, Any] = made.json()
    return created
