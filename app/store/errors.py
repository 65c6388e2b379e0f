"""What can go wrong in the store, each under its own name, so that the edge can choose a status code."""

from datetime import datetime
from pathlib import Path


class StoreError(Exception):
    """Any failure of the store; the text is for operators and names no secret."""


class StoreBusyError(StoreError):
    """Another writer held the file for longer than a request may wait. Nothing was written; try again."""

    def __init__(self, message: str, *, retry_after_s: int = 2) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class StoreUnavailableError(StoreError):
    """The file cannot be opened or written: missing, read-only, no space, no WAL, not migrated."""


class CorruptStoreError(StoreError):
    """The file is damaged. Nothing was changed; serve the calculator without saved links, and restore a backup."""


class ForeignStoreError(StoreError):
    """The file is an SQLite database of some other program."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(f"{path} is not a Tokenroof database: {reason}. It was left as it is.")


class NewerStoreError(StoreError):
    """The file was written by a later release, whose tables this one does not know."""

    def __init__(self, path: Path, *, found: str, known: str) -> None:
        self.path, self.found, self.known = path, found, known
        super().__init__(
            f"{path} is at {found}, this release knows only up to {known}. "
            "Start the newer release, or restore the backup that it took before migrating."
        )


class UnstorableError(StoreError, ValueError):
    """The value breaks a rule of the table (too long, not finite, already expired), so nothing was saved."""


class NotFoundError(StoreError):
    """No link of that name: wrong, malformed and revoked ones are the same to a stranger."""

    def __init__(self) -> None:
        super().__init__("Nothing is saved under this link.")


class ExpiredError(NotFoundError):
    """The link was good until `expired_at` (UTC) and can no longer be read or changed."""

    def __init__(self, expired_at: datetime) -> None:
        self.expired_at = expired_at
        super().__init__()


class WrongEditTokenError(StoreError):
    """The link exists, the edit token is not its own."""

    def __init__(self) -> None:
        super().__init__("This edit token does not belong to this link.")
