"""A reading is a value with its unit, or the named reason why there is none. Nothing here knows a vendor."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")


class Absence(StrEnum):
    """Why a reading is missing: the stable code that clients may rely on, with a sentence for a person."""

    NO_DRIVER = "no_driver"
    NOT_INSTALLED = "not_installed"
    NO_CARDS = "no_cards"
    NOT_SUPPORTED = "not_supported"
    FUNCTION_NOT_FOUND = "function_not_found"
    NO_PERMISSION = "no_permission"
    MIG_ENABLED = "mig_enabled"
    GPU_LOST = "gpu_lost"
    RESET_REQUIRED = "reset_required"
    VERSION_MISMATCH = "version_mismatch"
    TIMEOUT = "timeout"
    ZERO_READING = "zero_reading"
    IMPLAUSIBLE = "implausible"
    UNKNOWN_ERROR = "unknown_error"

    @property
    def message(self) -> str:
        """One plain sentence that says what is missing and, where there is a remedy, what to do."""
        return _MESSAGES[self]

    def document(self) -> dict[str, str]:
        """The JSON-ready form: `code` and `message`."""
        return {"code": self.value, "message": self.message}


_MESSAGES = {
    Absence.NO_DRIVER: "No driver for such a card was found on this machine.",
    Absence.NOT_INSTALLED: (
        "The package that reads NVIDIA cards is not installed; "
        "add the nvidia extra, for example with pip install 'tokenroof[nvidia]'."
    ),
    Absence.NO_CARDS: "The driver answers but shows no card to this process.",
    Absence.NOT_SUPPORTED: "This card or this kind of virtual machine does not offer the reading.",
    Absence.FUNCTION_NOT_FOUND: "The installed driver is too old, or too new, to know this reading.",
    Absence.NO_PERMISSION: "The driver refuses this reading to the user that runs the server.",
    Absence.MIG_ENABLED: "The card is split into MIG instances, so it has no reading of this kind as a whole.",
    Absence.GPU_LOST: "The card has fallen off the bus; it usually takes a reboot to bring it back.",
    Absence.RESET_REQUIRED: "The card must be reset before it can be read again.",
    Absence.VERSION_MISMATCH: (
        "The driver was changed while it was in use; restart this server, or the machine, to read the cards again."
    ),
    Absence.TIMEOUT: "The driver did not answer in time.",
    Absence.ZERO_READING: "The driver answered zero, which here means that it has no reading.",
    Absence.IMPLAUSIBLE: "The driver answered with a figure or a text that cannot be true.",
    Absence.UNKNOWN_ERROR: "The driver answered with an error that it does not explain; it will be asked again.",
}


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """A value in `unit`, or an `absence`; always exactly one of the two. A non-finite number becomes an absence.

    Raises:
        ValueError: both are given, or neither.
    """

    value: T | None
    unit: str = ""
    absence: Absence | None = None

    def __post_init__(self) -> None:
        """Refuses a contradiction; turns a non-finite number into an absence."""
        if (self.value is None) == (self.absence is None):
            raise ValueError("A reading has a value or the reason for its absence, and not both.")
        if isinstance(self.value, float) and not math.isfinite(self.value):
            object.__setattr__(self, "value", None)
            object.__setattr__(self, "absence", Absence.IMPLAUSIBLE)

    @classmethod
    def missing(cls, absence: Absence, unit: str = "") -> "Reading[T]":
        """A reading without a value, and why."""
        return cls(None, unit, absence)

    def document(self) -> dict[str, object]:
        """The JSON-ready form: `value` (finite or null), `unit`, and `absence` with `code` and `message`, or null."""
        return {
            "value": self.value,
            "unit": self.unit,
            "absence": self.absence.document() if self.absence is not None else None,
        }
