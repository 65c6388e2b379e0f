"""The catalog that names in a log are looked up in."""

import pytest

from app.catalog.catalog import Catalog, load_catalog


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load_catalog()
