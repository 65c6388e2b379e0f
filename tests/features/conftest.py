"""A link to look at."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from app.web.urls import API
from tests.factories import scenario_document

LINKS = f"{API}/configurations"


@pytest.fixture
def link(client: TestClient) -> dict[str, Any]:
    """A fresh link to the reference case: slug, url, edit token, expiry."""
    made = client.post(LINKS, json={"title": "Eight billion", "notes": "on one", "scenario": scenario_document()})
    assert made.status_code == 201
    created: dict[str, Any] = made.json()
    return created
