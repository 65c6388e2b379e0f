"""Whether saved links work at this moment: asked of the disk, not of the process."""

import secrets
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Engine, select

from app.store.engine import facts_of
from app.store.errors import StoreError, StoreUnavailableError
from app.store.session import write
from app.store.tables import EMPTY_OBJECT, Configuration
from app.store.tokens import DIGEST_BYTES

# A rolled-back write stays in memory, so it cannot notice a full disk. Room for the log to grow to its usual 4 MiB.
FREE_BYTES_WANTED = 8 * 1024**2


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the store can take a link, and if not, why in words for the operator."""

    ready: bool
    reason: str | None = None


def ready(engine: Engine, *, free_bytes_wanted: int = FREE_BYTES_WANTED) -> Readiness:
    """The store's readiness after a real write and read that leave nothing behind."""
    try:
        _demand_same_file(engine)
        _demand_room(engine, free_bytes_wanted)
        _write_read_and_forget(engine)
    except StoreError as error:
        return Readiness(False, str(error))
    return Readiness(True)


class _ForgetError(Exception):
    """Leaves a writing session without a commit."""


def _demand_same_file(engine: Engine) -> None:
    # Open connections go on working in a file that was deleted or replaced, and all that they take is lost.
    facts = facts_of(engine)
    try:
        status = facts.path.stat()
    except OSError as error:
        raise StoreUnavailableError(f"{facts.path} is gone ({error.strerror}).") from error
    if (status.st_dev, status.st_ino) != facts.device_and_inode:
        raise StoreUnavailableError(f"{facts.path} was replaced under the running server; restart it.")


def _demand_room(engine: Engine, free_bytes_wanted: int) -> None:
    folder = facts_of(engine).path.parent
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < free_bytes_wanted:
        raise StoreUnavailableError(f"{folder} has {free_bytes} bytes left, {free_bytes_wanted} are wanted.")


def _write_read_and_forget(engine: Engine) -> None:
    digest, now = secrets.token_bytes(DIGEST_BYTES), datetime.now(UTC)
    try:
        with write(engine, attempts=1) as session:
            session.add(
                Configuration(
                    slug_sha256=digest,
                    edit_token_sha256=digest,
                    title="",
                    notes="",
                    scenario=EMPTY_OBJECT,
                    headline=EMPTY_OBJECT,
                    formula_version="",
                    catalog_version="",
                    created_at=now,
                    updated_at=now,
                )
            )
            session.flush()
            session.expire_all()
            if session.scalar(select(Configuration.scenario).where(Configuration.slug_sha256 == digest)) is None:
                raise StoreUnavailableError("A row that was just written cannot be read.")
            raise _ForgetError
    except _ForgetError:
        return
