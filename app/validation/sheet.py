"""All measurements of a catalog beside their predictions, worked out once for as long as the application runs."""

from collections.abc import Sequence
from functools import cached_property
from threading import Lock

from app.catalog.catalog import Catalog
from app.catalog.cross_validated import load_cross_validated
from app.validation.compared import Compared, compared


class ValidationSheet:
    """The compared measurements, worst first, and those that are left out.

    Nothing is computed before it is asked for: the first that asks waits a second, and so belongs on a thread.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._lock, self._rows = Lock(), tuple[Compared, ...]()

    @property
    def rows(self) -> Sequence[Compared]:
        """Every measurement that a scenario can say, the one that is furthest off first."""
        with self._lock:
            if not self._rows:
                blind = load_cross_validated()
                found = (compared(row, blind, self.catalog) for row in self.catalog.measurements if row.is_compared)
                self._rows = tuple(sorted(found, key=lambda row: (-row.factor, row.measurement.id)))
            return self._rows

    @cached_property
    def left_out(self) -> Sequence[str]:
        """Why, of each measurement that no scenario can say."""
        return [row.left_out for row in self.catalog.measurements if not row.is_compared]

    @property
    def calibration_version(self) -> str | None:
        """Which calibration the predictions are of; None where there is none, and only ceilings are told."""
        return self.catalog.calibration.version if self.catalog.calibration else None
