"""Runs the migrations in one transaction, with foreign keys suspended around it and checked before the commit.

`app.store.schema` gives the file; the alembic command takes that of the settings (`alembic check`, `alembic revision`).
"""

from alembic import context
from sqlalchemy import Connection

from app.store.database import create_store_engine
from app.store.errors import CorruptStoreError
from app.store.tables import Base


def migrate_with(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=True,
        # SQLite can undo DDL, and as we say BEGIN ourselves it does: a killed migration leaves the old tables.
        transactional_ddl=True,
        compare_type=True,
        autogenerate_plugins=["alembic.autogenerate.*", "alembic.ext.checkconstraint_byname"],
    )
    with context.begin_transaction():
        context.run_migrations()
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        if broken:
            raise CorruptStoreError(f"The migration would leave rows without their parents: {broken[:5]}.")
        sign(connection)


def sign(connection: Connection) -> None:
    """The file's user_version is the number of revisions behind it, so that it can be refused without alembic."""
    migration = context.get_context()
    heads = migration.get_current_heads()
    revisions = [] if not heads else list(context.script.iterate_revisions(heads, "base"))
    connection.exec_driver_sql(f"PRAGMA user_version = {len(revisions)}")


def run() -> None:
    if context.is_offline_mode():
        raise NotImplementedError("Rebuilding an SQLite table needs the table: there is no offline mode.")
    path = context.config.attributes.get("path")
    if path is None:
        from app.settings import Settings

        path = Settings().database_path
    engine = create_store_engine(path, for_migration=True)
    try:
        with engine.connect() as connection:
            migrate_with(connection)
    finally:
        engine.dispose()


run()
