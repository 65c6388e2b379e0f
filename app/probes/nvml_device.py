"""One card, or one MIG instance, as NVML knows it: asked through its handle until it is known to be gone."""

from typing import Any

from app.probes.nvml import Nvml
from app.probes.reading import Absence

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
