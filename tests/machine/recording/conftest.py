"""A migrated database, and readings that carry what must never be recorded."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app.store.database import create_store_engine
from app.store.samples import Samples
from app.store.schema import migrate


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "template.sqlite3"
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
def samples(engine: Engine) -> Samples:
    return Samples(engine)


@pytest.fixture
def now() -> datetime:
    return datetime(2026, 11, 30, 12, tzinfo=UTC)
