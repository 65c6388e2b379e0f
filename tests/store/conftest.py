"""A migrated file for each test, and contents to save."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from app.store.configurations import Configurations
from app.store.engine import create_store_engine
from app.store.records import Contents
from app.store.schema import migrate

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "template.sqlite3"
    migrate(path)
    return path


@pytest.fixture
def path(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(template, tmp_path / "tokenroof.sqlite3"))


@pytest.fixture
def engine(path: Path) -> Iterator[Engine]:
    engine = create_store_engine(path)
    yield engine
    engine.dispose()


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def at(engine: Engine) -> Callable[[datetime], Configurations]:
    """The same store, seen at some moment."""
    return lambda moment: Configurations(engine, lambda: moment)


@pytest.fixture
def configurations(at: Callable[[datetime], Configurations], now: datetime) -> Configurations:
    return at(now)


@pytest.fixture
def contents() -> Callable[..., Contents]:
    def make(**changes: Any) -> Contents:
        values: dict[str, Any] = {
            "scenario": {"schema_version": 1, "model": {"id": "llama-3.1-8b"}},
            "title": "Eight billion on one card",
            "notes": "Ünïcode × notes",
            "headline": {"decode_step_s": 0.0048, "fits": True},
            "formula_version": "1",
            "catalog_version": "2026-11-29",
            "expires_at": None,
        }
        return Contents(**{**values, **changes})

    return make
