"""Files as an earlier release left them."""

from pathlib import Path

from alembic import command

from app.store.schema import alembic_config


def downgrade(path: Path, revision: str) -> None:
    """Takes the file back to an earlier revision; "base" is none at all."""
    command.downgrade(alembic_config(path), revision)
