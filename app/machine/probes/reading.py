"""A reading is a value with its unit, or the named reason why there is none. Nothing here knows a vendor."""

import math
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Generic, TypeVar

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
    NEEDS_TWO_SAMPLES = "needs_two_samples"
    NOTHING_TO_MEASURE = "nothing_to_measure"
    COUNTER_RESET = "counter_reset"
    NOT_REPORTED = "not_reported"
    UNREACHABLE = "unreachable"
    BLOCKED = "blocked"
    REFUSED = "refused"
    FAILING = "failing"
    NOT_METRICS = "not_metrics"
    TOO_LARGE = "too_large"
    UNRECOGNISED = "unrecognised"
    BUSY = "busy"
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
        "The package that reads these cards is not installed: the extras nvidia and amd bring it, "
        "for example pip install 'tokenroof[nvidia]'."
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
    Absence.TIMEOUT: "No answer came in time.",
    Absence.NEEDS_TWO_SAMPLES: "A rate needs two samples; it comes with the next one.",
    Absence.NOTHING_TO_MEASURE: "Nothing of the kind happened since the last sample.",
    Absence.COUNTER_RESET: "The counter began anew; the rate comes with the next sample.",
    Absence.NOT_REPORTED: "This server does not report it.",
    Absence.UNREACHABLE: "The server cannot be reached.",
    Absence.BLOCKED: "This server may not fetch from there.",
    Absence.REFUSED: "The server refuses to show its metrics; it may want a token.",
    Absence.FAILING: "The server answers with an error of its own; it is asked again.",
    Absence.NOT_METRICS: "What the server answers is no metrics text.",
    Absence.TOO_LARGE: "The server's answer is larger than is read here.",
    Absence.BUSY: "As many servers as may be read at one time are being read; it is tried again.",
    Absence.UNRECOGNISED: "The metrics are of no server that is known here.",
    Absence.ZERO_READING: "The driver answered zero, which here means that it has no reading.",
    Absence.IMPLAUSIBLE: "What was answered cannot be true.",
    Absence.UNKNOWN_ERROR: "The answer was an error without an explanation; it is asked again.",
}


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """A value in `unit`, or an `absence`; always exactly one of the two. A non-finite number becomes an absence.

    `read_from` names what was read (a driver's call, a server's metric) where several names may be met.

    Raises:
        ValueError: both are given, or neither.
    """

    value: T | None
    unit: str = ""
    absence: Absence | None = None
    read_from: str = ""

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
        """The JSON-ready form: `value` (finite or null), `unit`, `absence` with `code` and `message` or null, and
        `read_from` where there is a choice of names.
        """
        document: dict[str, object] = {
            "value": list(self.value) if isinstance(self.value, tuple) else self.value,
            "unit": self.unit,
            "absence": self.absence.document() if self.absence is not None else None,
        }
        return document | {"read_from": self.read_from} if self.read_from else document


def in_unit(unit: str) -> Any:
    """A field of a dataclass that holds a reading in `unit`."""
    return field(metadata={"unit": unit})


def units_of(kind: type[Any]) -> dict[str, str]:
    """The unit of each reading of a dataclass, in the order of its fields."""
    return {each.name: each.metadata["unit"] for each in fields(kind) if "unit" in each.metadata}
