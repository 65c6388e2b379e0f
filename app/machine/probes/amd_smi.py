"""The one way to ROCm's amdsmi: every call passes here, opens the library when it must, and cannot raise."""

import contextlib
import importlib
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from app.machine.probes.lane import Backoff
from app.machine.probes.reading import Absence

_NO_FIGURE = frozenset({0xFFFF, 2**32 - 1, 2**64 - 1})
"""The largest number of 16, 32 and 64 bits. The binding turns some into "N/A" and overlooks others: it compares with
the width of its own field, where the driver's field was narrower."""


_NO_WIDE_FIGURE = _NO_FIGURE - {0xFFFF}


_MICROWATTS_FROM = 100_000
"""From here on a power is in µW: no card draws as many watts, and none as few microwatts."""


def figure(answer: object, *keys: str, wide: bool = False) -> object:
    """What the answer holds under the keys, one within the other, or an `Absence`.

    "N/A", a sentinel and a key that this binding does not have are `not_supported`. In a `wide` field (a counter, a
    size) 65,535 is a number like any other.
    """
    for key in keys:
        if isinstance(answer, Absence):
            return answer
        if not isinstance(answer, dict):
            return Absence.IMPLAUSIBLE
        answer = answer.get(key, Absence.NOT_SUPPORTED)
    if answer == "N/A" or (isinstance(answer, int) and answer in (_NO_WIDE_FIGURE if wide else _NO_FIGURE)):
        return Absence.NOT_SUPPORTED
    return answer


def milliwatts(raw: object) -> object:
    """A power in mW: some releases give W where others give µW, in a field of the same name."""
    if not isinstance(raw, int):
        return raw
    return raw * 1000 if raw < _MICROWATTS_FROM else raw // 1000


# The numbers of amdsmi_status_t, as they have been since the first release; what is not listed is an unknown error.
# The binding gives them to its exceptions and does not export their names.
_ABSENCE_OF_CODE = {
    2: Absence.NOT_SUPPORTED,
    3: Absence.NOT_SUPPORTED,  # Not yet implemented.
    4: Absence.NO_DRIVER,  # A library that this one needs cannot be loaded.
    5: Absence.FUNCTION_NOT_FOUND,
    8: Absence.TIMEOUT,
    9: Absence.TIMEOUT,  # To be tried again.
    10: Absence.NO_PERMISSION,
    11: Absence.TIMEOUT,  # Interrupted.
    14: Absence.NOT_SUPPORTED,  # A file of the kernel's cannot be opened: this card has none.
    20: Absence.NOT_SUPPORTED,
    30: Absence.TIMEOUT,  # Busy.
    31: Absence.GPU_LOST,
    34: Absence.NO_DRIVER,
    40: Absence.NOT_SUPPORTED,  # No data.
    42: Absence.IMPLAUSIBLE,  # Data of an unexpected size.
    43: Absence.IMPLAUSIBLE,
    51: Absence.NO_DRIVER,
    52: Absence.NOT_SUPPORTED,
    54: Absence.RESET_REQUIRED,
    55: Absence.NOT_SUPPORTED,
}


_NOT_INITIALIZED = 32


class Choice(NamedTuple):
    """A member of one of the binding's enumerations, by names: `Choice("AmdSmiClkType", "GFX")`."""

    kind: str
    member: str


class AmdSmi:
    """amdsmi through its Python binding, loaded at the first call.

    A failed opening is remembered and tried again after 1, 2, 4, … 60 s of `clock` (seconds, monotonic): a machine
    without the package or the library costs nothing in between. Not for use by two threads at once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._backoff = Backoff(Absence.NOT_INSTALLED, clock)
        self._binding: Any = None
        self._open = False

    def call(self, function: str, *arguments: object) -> Any:
        """What the binding's function returns, or an `Absence`; a `Choice` among the arguments is looked up first."""
        if not self._open and not self._opened():
            return self._backoff.failure
        answer = self._invoke(function, *arguments)
        if self._open and not isinstance(answer, Absence):
            self._backoff.worked()
        return answer

    def name_of(self, kind: str, value: object) -> str | None:
        """What the binding's enumeration calls a number, or None where it knows neither."""
        try:
            return str(getattr(self._binding, kind)(value).name)
        except Exception:  # No such enumeration, no such number, or no number at all.
            return None

    def drop(self, absence: Absence) -> None:
        """Closes the library if it is open; calls then answer `absence` until the next attempt to open it is due."""
        if self._open:
            self.close()
            self._backoff.failed(absence)

    def close(self) -> None:
        """Closes the library if it is open; the next call opens it again."""
        if self._open:
            self._open = False
            self._invoke("amdsmi_shut_down")

    def _opened(self) -> bool:
        self._open = self._backoff.attempt(self._begin)
        return self._open

    def _begin(self) -> Absence | None:
        failure = self._load()
        answer = self._invoke("amdsmi_init") if failure is None else failure
        return answer if isinstance(answer, Absence) else None

    def _load(self) -> Absence | None:
        """Imports the binding, silently: without the system's library it prints two lines and raises a KeyError.

        Python forgets a module whose import failed, so the next attempt starts afresh. What other threads print during
        the import is lost with it; the log handlers of this product hold their streams and lose nothing.
        """
        if self._binding is not None:
            return None
        try:
            with (
                open(os.devnull, "w", encoding="utf-8") as nowhere,
                contextlib.redirect_stdout(nowhere),
                contextlib.redirect_stderr(nowhere),
            ):
                self._binding = importlib.import_module("amdsmi")
        except ModuleNotFoundError as error:
            return Absence.NOT_INSTALLED if error.name == "amdsmi" else Absence.NO_DRIVER
        except (Exception, SystemExit):  # An older library raises AttributeError; earlier bindings left the process.
            return Absence.NO_DRIVER
        return None

    def _invoke(self, function: str, *arguments: object) -> Any:
        try:
            target = getattr(self._binding, function)
            chosen = [self._chosen(each) if isinstance(each, Choice) else each for each in arguments]
        except AttributeError:
            return Absence.FUNCTION_NOT_FOUND  # A binding older or newer than ours.
        try:
            return target(*chosen)
        except UnicodeDecodeError as error:
            return bytes(error.object)  # The binding decodes strictly; the card's name is still worth showing.
        except Exception as error:  # Those of the binding above all, but a mismatched one may raise anything.
            return self._absence_of(error)

    def _chosen(self, choice: Choice) -> object:
        return getattr(getattr(self._binding, choice.kind), choice.member)

    def _absence_of(self, error: Exception) -> Absence:
        code = getattr(error, "err_code", None)
        if not isinstance(code, int):
            return Absence.UNKNOWN_ERROR
        if code == _NOT_INITIALIZED:
            self.drop(Absence.UNKNOWN_ERROR)  # Somebody else in this process has shut the library down.
        return _ABSENCE_OF_CODE.get(code, Absence.UNKNOWN_ERROR)
