"""What a secret link shows at the edge, whichever kind it is of."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app.store.configurations import Configurations
from app.store.engine import create_store_engine
from app.store.records import Contents
from app.store.schema import migrate
from app.store.shared import SharedContents, SharedDocuments
from app.web.links import NOT_FOUND, ShareTexts, living, store_problems
from app.web.problem import ProblemError

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)
NO_SNAPSHOT = "There is no shared reading at this address."


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    migrate(tmp_path / "tokenroof.sqlite3")
    engine = create_store_engine(tmp_path / "tokenroof.sqlite3")
    yield engine
    engine.dispose()


def test_each_kind_is_shown_gone_or_not_found_in_its_own_words(engine: Engine) -> None:
    snapshots = SharedDocuments(engine, "snapshot", lambda: NOW)
    late = SharedDocuments(engine, "snapshot", lambda: NOW + DAY)
    made = snapshots.create(
        SharedContents(
            title="Eight streams", document={}, formula_version="1", catalog_version="1", expires_at=NOW + DAY
        )
    )
    assert living(snapshots, made.slug, NO_SNAPSHOT).title == "Eight streams"
    with pytest.raises(ProblemError) as found:
        living(late, made.slug, NO_SNAPSHOT)
    assert (found.value.status, found.value.detail) == (410, "This link expired on 2026-12-01.")
    with pytest.raises(ProblemError) as found:
        living(SharedDocuments(engine, "calibration"), made.slug, NO_SNAPSHOT)
    assert (found.value.status, found.value.detail) == (404, NO_SNAPSHOT)
    with pytest.raises(ProblemError) as found, store_problems(NO_SNAPSHOT):
        SharedDocuments(engine, "calibration").revoke(made.slug, made.edit_token)
    assert (found.value.status, found.value.detail) == (404, NO_SNAPSHOT)


def test_saved_configurations_keep_theirs(engine: Engine) -> None:
    configurations = Configurations(engine, lambda: NOW)
    made = configurations.create(
        Contents(
            scenario={},
            title="Kept",
            notes="",
            headline={},
            formula_version="1",
            catalog_version="1",
            expires_at=None,
        )
    )
    assert living(configurations, made.slug).notes == ""
    with pytest.raises(ProblemError) as found:
        living(SharedDocuments(engine, "snapshot"), made.slug)
    assert (found.value.status, found.value.detail) == (404, NOT_FOUND)


def test_texts_of_what_is_shared_are_cleaned_and_have_no_notes() -> None:
    assert ShareTexts(title=" a\u202eb ").model_dump() == {"title": "ab", "expires_in_days": None}
