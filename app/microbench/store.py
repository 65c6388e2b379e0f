"""Measured roofs in a file of the data folder: the newest of each card and kind, and nothing that names the machine."""

import logging
import os
from pathlib import Path

from pydantic import TypeAdapter

from app.microbench.result import MeasuredRoofs
from app.strict_json import StrictJsonError, dumps, loads

logger = logging.getLogger("tokenroof.microbench")

FILE_NAME = "measured_roofs.json"
MOST_RUNS = 64
MOST_FILE_BYTES = 2 * 1024 * 1024
_VERSION = 1
_RUN = TypeAdapter(MeasuredRoofs)


class RoofStore:
    """The file; every call reads or writes it whole. Several processes may share it: each write replaces it at once."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME

    def read(self) -> tuple[MeasuredRoofs, ...]:
        """All measurements, the newest first. A broken file is as good as none; a broken entry is left out."""
        found = [run for entry in self._entries() if (run := _run_of(entry)) is not None]
        return tuple(sorted(found, key=lambda run: run.measured_at, reverse=True))

    def add(self, new: MeasuredRoofs) -> None:
        """Keeps it in the place of what was known of the same card and kinds; beyond `MOST_RUNS` the oldest go.

        Raises:
            OSError: it cannot be written; what was there is still there.
        """
        others = [run.without(new.kinds) if run.card == new.card else run for run in self.read()]
        kept = [new, *(run for run in others if run is not None)][:MOST_RUNS]
        body = dumps({"version": _VERSION, "roofs": [_RUN.dump_python(run, mode="json") for run in kept]})
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = self._path.with_name(f"{FILE_NAME}.{os.getpid()}.partial")
        try:
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self._path)
        finally:
            partial.unlink(missing_ok=True)

    def _entries(self) -> list[object]:
        try:
            with self._path.open("rb") as file:
                body = file.read(MOST_FILE_BYTES + 1)
        except FileNotFoundError:
            return []
        except OSError as error:
            logger.warning("%s cannot be read (%s)", FILE_NAME, error.strerror)
            return []
        try:
            told = loads(body) if len(body) <= MOST_FILE_BYTES else None
        except StrictJsonError as error:
            logger.warning("%s is passed over: %s", FILE_NAME, error)
            return []
        if not isinstance(told, dict) or told.get("version") != _VERSION or not isinstance(told.get("roofs"), list):
            logger.warning("%s is passed over: it is none that this release wrote.", FILE_NAME)
            return []
        entries: list[object] = told["roofs"][:MOST_RUNS]
        return entries


def _run_of(entry: object) -> MeasuredRoofs | None:
    try:
        return _RUN.validate_json(dumps(entry), strict=True)
    except ValueError:
        logger.warning("an entry of %s is passed over: it is no measurement.", FILE_NAME)
        return None
