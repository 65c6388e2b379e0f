"""The one way to NVML, and a device of it: every call passes here, opens the library when it must, and cannot raise."""

import importlib
import time
from collections.abc import Callable
from typing import Any

from app.machine.probes.lane import Backoff
from app.machine.probes.reading import Absence

# The return codes of nvml.h by the names that the binding gives them; any other is an unknown error.
_ABSENCE_OF_CODE = {
    "NVML_ERROR_NOT_SUPPORTED": Absence.NOT_SUPPORTED,
    "NVML_ERROR_NO_PERMISSION": Absence.NO_PERMISSION,
    "NVML_ERROR_NOT_FOUND": Absence.NO_CARDS,
    "NVML_ERROR_DRIVER_NOT_LOADED": Absence.NO_DRIVER,
    "NVML_ERROR_TIMEOUT": Absence.TIMEOUT,
    "NVML_ERROR_LIBRARY_NOT_FOUND": Absence.NO_DRIVER,
    "NVML_ERROR_FUNCTION_NOT_FOUND": Absence.FUNCTION_NOT_FOUND,
    "NVML_ERROR_ARGUMENT_VERSION_MISMATCH": Absence.FUNCTION_NOT_FOUND,
    "NVML_ERROR_DEPRECATED": Absence.FUNCTION_NOT_FOUND,
    "NVML_ERROR_GPU_IS_LOST": Absence.GPU_LOST,
    "NVML_ERROR_RESET_REQUIRED": Absence.RESET_REQUIRED,
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH": Absence.VERSION_MISMATCH,
}

# With these the library itself is gone, not one card: close it and start again later.
_ENDS_THE_SESSION = frozenset({Absence.NO_DRIVER, Absence.VERSION_MISMATCH})


class Nvml:
    """NVML through the nvidia-ml-py binding, loaded at the first call.

    A failed opening is remembered and tried again after 1, 2, 4, … 60 s of `clock` (seconds, monotonic), so that a
    container whose NVML answers "Unknown Error" recovers by itself and a machine without a driver costs nothing.
    What the library allocates for us is freed before it is closed. Not for use by two threads at once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._backoff = Backoff(Absence.NO_DRIVER, clock)
        self._binding: Any = None
        self._open = False
        self._allocated: dict[int, tuple[object, str]] = {}

    def call(self, function: str, *arguments: object) -> Any:
        """What the binding's function returns, or an `Absence`. A text that is not UTF-8 comes back as its bytes."""
        if not self._open and not self._opened():
            return self._backoff.failure
        answer = self._invoke(function, *arguments)
        if isinstance(answer, Absence):
            if answer in _ENDS_THE_SESSION:
                self.drop(answer)
        elif self._open:
            self._backoff.worked()
        return answer

    def drop(self, absence: Absence) -> None:
        """Closes the library if it is open; calls then answer `absence` until the next attempt to open it is due."""
        if self._open:
            self.close()
            self._backoff.failed(absence)

    def close(self) -> None:
        """Frees what was allocated and closes the library if it is open; the next call opens it again."""
        if self._open:
            self._open = False
            while self._allocated:
                _, (allocated, free) = self._allocated.popitem()
                self._invoke(free, allocated)
            self._invoke("nvmlShutdown")

    def allocate(self, function: str, free: str) -> Any:
        """What the function allocates, or an `Absence`; `release`, or else closing the library, hands it to `free`."""
        answer = self.call(function)
        if not isinstance(answer, Absence):
            self._allocated[id(answer)] = (answer, free)
        return answer

    def holds(self, allocated: object) -> bool:
        """Whether this was allocated here and not freed since."""
        return id(allocated) in self._allocated

    def release(self, allocated: object) -> None:
        """Frees what was allocated, once; anything else is left alone."""
        if self.holds(allocated):
            _, free = self._allocated.pop(id(allocated))
            self._invoke(free, allocated)

    def absence_of(self, code: object) -> Absence | None:
        """What the return code of one part of an answer says; None is success.

        Answers about several things (field values, GPM metrics) succeed as a whole and fail part by part.
        """
        if code == getattr(self._binding, "NVML_SUCCESS", None):
            return None
        for name, absence in _ABSENCE_OF_CODE.items():
            if code is not None and code == getattr(self._binding, name, None):
                return absence
        return Absence.UNKNOWN_ERROR

    def _opened(self) -> bool:
        self._open = self._backoff.attempt(self._begin)
        return self._open

    def _begin(self) -> Absence | None:
        failure = self._load()
        answer = self._invoke("nvmlInit") if failure is None else failure
        return answer if isinstance(answer, Absence) else None

    def _load(self) -> Absence | None:
        if self._binding is None:
            try:
                self._binding = importlib.import_module("pynvml")
            except ImportError:
                return Absence.NOT_INSTALLED
            except Exception:  # A broken package may raise anything; it must not break the page.
                return Absence.UNKNOWN_ERROR
        return None

    def _invoke(self, function: str, *arguments: object) -> Any:
        target = getattr(self._binding, function, None)
        if target is None:
            return Absence.FUNCTION_NOT_FOUND  # An older binding than ours.
        try:
            return target(*arguments)
        except UnicodeDecodeError as error:
            return bytes(error.object)  # The binding decodes strictly; the card's name is still worth showing.
        except Exception as error:  # NVMLError above all, but a mismatched binding may raise TypeError too.
            return self._absence_of(error)

    def _absence_of(self, error: Exception) -> Absence:
        code = getattr(error, "value", None)
        if code == getattr(self._binding, "NVML_ERROR_UNINITIALIZED", None) and code is not None:
            self.drop(Absence.UNKNOWN_ERROR)  # Somebody else in this process has shut the library down.
        return self.absence_of(code) or Absence.UNKNOWN_ERROR


# Constants of nvml.h.
_INVALID_ARGUMENT = 2
_MEMBER_OF_TYPE = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")

ALL_LINKS = 2**32 - 1
"""The scope with which a field of the links is the sum over all of them."""

Field = int | tuple[int, int]
"""A field's number, or that and its scope."""

_ENDS_THE_DEVICE = frozenset({Absence.GPU_LOST, Absence.RESET_REQUIRED, Absence.VERSION_MISMATCH, Absence.NO_DRIVER})


class Device:
    """Asks NVML about what `handle` stands for, and stops asking once it is known to be gone; `fault` says why.

    A handle that could not be had is given as its `Absence`. `nvml` is the library, for calls that take no handle.
    """

    def __init__(self, nvml: Nvml, handle: Any) -> None:
        self.nvml = nvml
        self._handle = handle
        self.fault: Absence | None = handle if isinstance(handle, Absence) else None

    def ask(self, function: str, *arguments: object) -> Any:
        """What the function answers for this handle, or an `Absence`."""
        if self.fault is not None:
            return self.fault
        return self._noted(self.nvml.call(function, self._handle, *arguments))

    def ask_newer_or_older(self, newer: tuple[Any, ...], older: tuple[Any, ...]) -> tuple[Any, str]:
        """The newer call's answer, else the older's, and the function that gave it.

        Of two absences the one that says more than "no such function".
        """
        first = self.ask(*newer)
        if not isinstance(first, Absence):
            return first, newer[0]
        second = self.ask(*older)
        return (first, newer[0]) if second is Absence.FUNCTION_NOT_FOUND else (second, older[0])

    def field_values(self, *fields: Field) -> list[Any]:
        """A number or an `Absence` for each field, in their order, all from one call; each has a status of its own."""
        answer = self.ask("nvmlDeviceGetFieldValues", list(fields))
        if isinstance(answer, Absence):
            return [answer] * len(fields)
        return [self._noted(self._value(each)) for each in answer]

    def _value(self, answer: Any) -> Any:
        if answer.nvmlReturn == _INVALID_ARGUMENT:
            return Absence.FUNCTION_NOT_FOUND  # A field that this driver has not heard of.
        absence = self.nvml.absence_of(answer.nvmlReturn)
        if absence is not None:
            return absence
        if answer.valueType >= len(_MEMBER_OF_TYPE):
            return Absence.IMPLAUSIBLE
        return getattr(answer.value, _MEMBER_OF_TYPE[answer.valueType])

    def _noted(self, answer: Any) -> Any:
        if isinstance(answer, Absence) and answer in _ENDS_THE_DEVICE:
            self.fault = self.fault or answer
        return answer
