from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import IntegrityError

from app.store.database import write
from app.store.tables import (
    DOCUMENT_MAX_CHARS,
    EMPTY_OBJECT,
    FIGURES_MAX_CHARS,
    KINDS,
    Base,
    Configuration,
    LiveSample,
    RecorderRow,
    SharedRow,
    UtcText,
)

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
DIALECT = sqlite.dialect()


def a_row(**changes: Any) -> Configuration:
    values: dict[str, Any] = {
        "slug_sha256": b"s" * 32,
        "edit_token_sha256": b"e" * 32,
        "title": "",
        "notes": "",
        "scenario": EMPTY_OBJECT,
        "headline": EMPTY_OBJECT,
        "formula_version": "1",
        "catalog_version": "1",
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Configuration(**{**values, **changes})


def a_shared_row(**changes: Any) -> SharedRow:
    values: dict[str, Any] = {
        "slug_sha256": b"s" * 32,
        "edit_token_sha256": b"e" * 32,
        "title": "",
        "kind": "snapshot",
        "document": EMPTY_OBJECT,
        "formula_version": "1",
        "catalog_version": "1",
        "created_at": NOW,
    }
    return SharedRow(**{**values, **changes})


def a_sample_row(**changes: Any) -> LiveSample:
    return LiveSample(**{"taken_at": NOW, "source": "nvidia/0", "figures": EMPTY_OBJECT, **changes})


def a_recorder_row(**changes: Any) -> RecorderRow:
    return RecorderRow(**{"id": 1, "since": NOW, "until": NOW, **changes})


def test_stored_moments_sort_as_they_happened() -> None:
    moments = [NOW + timedelta(microseconds=step) for step in (0, 1, 10, 999_999, 1_000_000, 86_400_000_000)]
    moments.append((NOW + timedelta(days=2)).astimezone(timezone(timedelta(hours=-11))))
    texts = [UtcText().process_bind_param(moment, DIALECT) for moment in moments]
    assert texts == sorted(str(text) for text in texts)
    assert texts[0] == "2026-11-29T12:00:00.000000Z"
    assert [UtcText().process_result_value(text, DIALECT) for text in texts] == moments


def test_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        UtcText().process_bind_param(datetime(2026, 1, 1), DIALECT)


def test_every_constraint_has_a_name() -> None:
    for table in Base.metadata.tables.values():
        assert all(constraint.name for constraint in table.constraints)
        assert all(index.name for index in table.indexes)


def test_good_row_is_taken(engine: Engine) -> None:
    with write(engine) as session:
        session.add(a_row())
        session.add_all(a_shared_row(slug_sha256=kind.encode().ljust(32), kind=kind) for kind in KINDS)
        session.add_all(a_sample_row(source=source) for source in ("nvidia/0", "amd/15/6", "server-1", "host"))
        session.add(a_recorder_row(since=None, until=None))


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"slug_sha256": b"short"}, "slug_sha256_is_digest"),
        ({"edit_token_sha256": b""}, "edit_token_sha256_is_digest"),
        ({"title": "t" * 121}, "title_length"),
        ({"notes": "n" * 4_001}, "notes_length"),
        ({"formula_version": "1" * 65}, "formula_version_length"),
        ({"scenario": "[]"}, "scenario_is_object"),
        ({"headline": "null"}, "headline_is_object"),
        ({"revoked_at": NOW, "title": "still here"}, "revoked_is_wiped"),
        ({"title": None}, "configurations.title"),
    ],
)
def test_table_itself_refuses_a_bad_row(engine: Engine, changes: dict[str, Any], rule: str) -> None:
    with pytest.raises(IntegrityError, match=rule), write(engine) as session:
        session.add(a_row(**changes))


@pytest.mark.parametrize(
    ("row_of", "changes", "rule"),
    [
        (a_shared_row, {"slug_sha256": b"short"}, "slug_sha256_is_digest"),
        (a_shared_row, {"kind": "configuration"}, "kind_is_known"),
        (a_shared_row, {"document": "[]"}, "document_is_object"),
        (a_shared_row, {"document": "{" + "x" * DOCUMENT_MAX_CHARS + "}"}, "document_length"),
        (a_shared_row, {"revoked_at": NOW, "title": "still here"}, "revoked_is_wiped"),
        (a_shared_row, {"revoked_at": NOW, "document": '{"still":"here"}'}, "revoked_is_wiped"),
        (a_sample_row, {"source": "GPU-0b6cc1d5"}, "source_is_plain"),
        (a_sample_row, {"source": "10.0.0.7"}, "source_is_plain"),
        (a_sample_row, {"source": "a.host.name"}, "source_is_plain"),
        (a_sample_row, {"source": "f" * 25}, "source_is_plain"),
        (a_sample_row, {"source": ""}, "source_is_plain"),
        (a_sample_row, {"figures": "[]"}, "figures_is_object"),
        (a_sample_row, {"figures": "{" + "x" * FIGURES_MAX_CHARS + "}"}, "figures_length"),
        (a_recorder_row, {"id": 2}, "id_is_only"),
        (a_recorder_row, {"since": None}, "both_or_neither"),
        (a_recorder_row, {"until": None}, "both_or_neither"),
    ],
)
def test_newer_tables_refuse_a_bad_row_too(
    engine: Engine, row_of: Callable[..., Base], changes: dict[str, Any], rule: str
) -> None:
    with pytest.raises(IntegrityError, match=rule), write(engine) as session:
        session.add(row_of(**changes))


def test_source_has_one_row_at_an_instant(engine: Engine) -> None:
    with pytest.raises(IntegrityError, match="UNIQUE"), write(engine) as session:
        session.add_all([a_sample_row(), a_sample_row()])


def test_slug_is_unique(engine: Engine) -> None:
    with write(engine) as session:
        session.add(a_row())
    with pytest.raises(IntegrityError, match="UNIQUE"), write(engine) as session:
        session.add(a_row(edit_token_sha256=b"f" * 32))


def test_moment_in_another_spelling_is_refused_by_the_table(engine: Engine) -> None:
    with write(engine) as session:
        session.add(a_row())
    for text in ("2026-11-29", "2026-11-29 12:00:00", "2026-11-29T12:00:00.000000+00:00", "1796000000"):
        with pytest.raises(IntegrityError, match="expires_at_is_utc"), write(engine) as session:
            session.connection().exec_driver_sql("UPDATE configurations SET expires_at = ?", (text,))
