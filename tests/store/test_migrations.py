"""The scripts in migrations/: up and down with rows in the tables, and no drift from the typed classes."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, inspect

from app.store.database import HEAD_REVISION, REVISIONS, USER_VERSION, connect, create_store_engine
from app.store.errors import CorruptStoreError
from app.store.links import LinkName, Links, Saved, digest, new_token
from app.store.schema import SCRIPTS, alembic_config, migrate
from app.store.tables import Base
from tests.store.older import downgrade

MOMENT = "2026-11-29T12:00:00.000000Z"
COLUMNS = (
    "slug_sha256, edit_token_sha256, title, notes, scenario, headline, formula_version, catalog_version, "
    "created_at, updated_at, expires_at, revoked_at"
)


@pytest.fixture
def metadata_engine() -> Iterator[Engine]:
    """Tables made from the typed classes, without any migration."""
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    yield engine
    engine.dispose()


def insert(path: Path, *, slug: bytes, title: str = "kept", revoked_at: str | None = None) -> None:
    values = (slug * 32, b"e" * 32, title, "n" * 100, '{"a":1}', "{}", "1", "1", MOMENT, MOMENT, MOMENT, revoked_at)
    with closing(connect(path)) as connection:
        connection.execute(f"INSERT INTO configurations ({COLUMNS}) VALUES ({','.join('?' * 12)})", values)


def rows(path: Path, table: str = "configurations") -> list[tuple[Any, ...]]:
    with closing(connect(path)) as connection:
        return connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


def shape(engine: Engine) -> dict[str, Any]:
    """All that the database knows of each table, in an order of its own."""
    inspector = inspect(engine)
    return {
        table: {
            "columns": [{**column, "type": str(column["type"])} for column in inspector.get_columns(table)],
            "checks": {check["name"]: check["sqltext"] for check in inspector.get_check_constraints(table)},
            "uniques": inspector.get_unique_constraints(table),
            "primary key": inspector.get_pk_constraint(table),
            "indexes": sorted(inspector.get_indexes(table), key=lambda index: str(index["name"])),
        }
        for table in Base.metadata.tables
        if inspector.has_table(table)
    }


def shape_of_file(path: Path) -> dict[str, Any]:
    engine = create_store_engine(path, for_migration=True)
    try:
        return shape(engine)
    finally:
        engine.dispose()


def test_known_revisions_are_those_of_the_scripts(path: Path) -> None:
    scripts = ScriptDirectory.from_config(alembic_config(path))
    assert scripts.get_heads() == [HEAD_REVISION]
    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == REVISIONS


def test_file_names_begin_with_the_date_of_their_revision() -> None:
    names = sorted(file.stem for file in (SCRIPTS / "versions").glob("*.py"))
    assert all(re.fullmatch(r"\d{4}_\d\d_\d\d_[a-z_]+", name) for name in names)
    assert {name[:10].replace("_", "") + name[10:] for name in names} == set(REVISIONS)


def test_tables_and_migrations_agree(path: Path, metadata_engine: Engine) -> None:
    command.check(alembic_config(path))
    engine = create_store_engine(path)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()
    # Constraints too, word for word: alembic does not compare the text of a CHECK.
    assert shape_of_file(path) == shape(metadata_engine)


@pytest.mark.parametrize("revision", ["base", *REVISIONS])
def test_down_and_up_again_gives_the_same_table(path: Path, revision: str) -> None:
    before = shape_of_file(path)
    downgrade(path, revision)
    assert migrate(path).after == HEAD_REVISION
    assert shape_of_file(path) == before
    with closing(connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (USER_VERSION,)


def test_rows_survive_down_and_up(path: Path) -> None:
    for slug in (b"a", b"b", b"c"):
        insert(path, slug=slug)
    before = rows(path)
    downgrade(path, REVISIONS[0])
    assert rows(path) == before
    migrate(path)
    assert rows(path) == before


def test_going_down_takes_only_what_the_older_release_does_not_know(path: Path) -> None:
    insert(path, slug=b"a")
    with closing(connect(path)) as connection:
        connection.execute("INSERT INTO live_samples (taken_at, source, figures) VALUES (?, 'host', '{}')", (MOMENT,))
    before = rows(path)
    downgrade(path, "20261129_guard_revoked")
    assert rows(path) == before
    assert set(shape_of_file(path)) == {"configurations"}
    migrate(path)
    assert rows(path, "live_samples") == []


def test_each_revision_is_signed_by_its_number(path: Path) -> None:
    for number, revision in reversed(list(enumerate(["base", *REVISIONS]))):
        downgrade(path, revision)
        with closing(connect(path)) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (number,)


def test_revoked_rows_of_the_first_revision_are_wiped_on_the_way_up(path: Path) -> None:
    downgrade(path, REVISIONS[0])
    insert(path, slug=b"a")
    insert(path, slug=b"r", title="taken back", revoked_at=MOMENT)
    migrate(path)
    assert [row[3:7] for row in rows(path)] == [("kept", "n" * 100, '{"a":1}', "{}"), ("", "", "{}", "{}")]


def test_rebuilding_a_table_keeps_the_rows_that_point_to_it(path: Path) -> None:
    insert(path, slug=b"a")
    with closing(connect(path)) as connection:
        connection.execute(
            "CREATE TABLE children (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL "
            "REFERENCES configurations (id) ON DELETE CASCADE)"
        )
        connection.execute("INSERT INTO children (parent) SELECT id FROM configurations")
    before = rows(path, "children")
    downgrade(path, REVISIONS[0])
    migrate(path)
    assert rows(path, "children") == before
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM configurations")
    assert rows(path, "children") == []


def test_migration_that_would_leave_orphans_is_undone_whole(path: Path) -> None:
    downgrade(path, REVISIONS[0])
    insert(path, slug=b"r", title="taken back", revoked_at=MOMENT)
    with closing(connect(path)) as connection:
        connection.execute("CREATE TABLE children (parent INTEGER REFERENCES configurations (id))")
        connection.execute("INSERT INTO children VALUES (4711)")
    before = (rows(path), shape_of_file(path))
    with pytest.raises(CorruptStoreError, match="without their parents"):
        migrate(path)
    assert (rows(path), shape_of_file(path)) == before
    assert rows(path, "alembic_version") == [(REVISIONS[0],)]


def test_rows_that_an_earlier_release_wrote_open_as_they_were(path: Path) -> None:
    """Of the first revision a configuration, which knows no other kind; then one of each of the others."""
    slugs = {name: new_token() for name in get_args(LinkName)}
    headline = {"a": 1, "b": 0.1 + 0.2}
    downgrade(path, REVISIONS[0])
    common = (digest(new_token()), "kept", "4", "older", MOMENT, "2099-01-01T00:00:00.000000Z")
    with closing(connect(path)) as connection:
        connection.execute(
            "INSERT INTO configurations (edit_token_sha256, title, formula_version, catalog_version, created_at, "
            "expires_at, slug_sha256, scenario, notes, headline, updated_at) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
            (*common, digest(slugs["configuration"]), '{"model":{}}', "n", json.dumps(headline), MOMENT),
        )
    assert migrate(path).after == HEAD_REVISION
    with closing(connect(path)) as connection:
        for kind in ("snapshot", "calibration"):
            connection.execute(
                "INSERT INTO shared_documents (edit_token_sha256, title, formula_version, catalog_version, created_at, "
                "expires_at, slug_sha256, kind, document) VALUES (?,?,?,?,?,?,?,?,?)",
                (*common, digest(slugs[kind]), kind, json.dumps({"scenario": headline})),
            )
    engine = create_store_engine(path)
    found = {kind: Links(engine, kind).get(slugs[kind]) for kind in get_args(LinkName)}
    engine.dispose()
    for kind, saved in found.items():
        assert isinstance(saved, Saved)
        assert (saved.title, saved.formula_version, saved.catalog_version) == ("kept", "4", "older")
        document = {"scenario": {"model": {}}, "notes": "n", "headline": headline}
        assert saved.document == (document if kind == "configuration" else {"scenario": headline})
