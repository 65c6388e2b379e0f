"""A migrated file for each test, and contents to save."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from app.store.database import create_store_engine
from app.store.links import Contents, LinkName, Links
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
def at(engine: Engine) -> Callable[[datetime], Links]:
    """The saved configurations, seen at some moment."""
    return lambda moment: Links(engine, "configuration", lambda: moment)


@pytest.fixture
def configurations(at: Callable[[datetime], Links], now: datetime) -> Links:
    return at(now)


@pytest.fixture
def contents() -> Callable[..., Contents]:
    """Contents to save, of a configuration unless said; a change of a part of the document by its name."""

    def make(kind: LinkName = "configuration", **changes: Any) -> Contents:
        document: dict[str, Any] = {
            "scenario": {"schema_version": 1, "model": {"id": "llama-3.1-8b"}},
            "notes": "Ünïcode × notes",
            "headline": {"decode_step_s": 0.0048, "fits": True},
        }
        if kind != "configuration":
            document = {"figures": [{"id": "ttft", "measured": 0.12, "predicted": None}]}
        document |= {name: changes.pop(name) for name in tuple(changes) if name in {*document, "filling"}}
        values: dict[str, Any] = {
            "title": "Eight billion on one card",
            "document": document,
            "formula_version": "1",
            "catalog_version": "2026-11-29",
            "expires_at": None,
        }
        return Contents(**{**values, **changes})

    return make
