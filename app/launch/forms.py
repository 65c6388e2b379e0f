"""What goes out and comes in: a launch text as a Variant, and what was read of one as a CommandReading."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MOST_BYTES = 64 * 1024
"""Longest text that is read, in UTF-8."""


class CommandError(ValueError):
    """What is wrong with a text that was pasted, in words fit for its author. Never repeats the text."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to launch a scenario: `text` in a `language`, its flags checked against `release`.

    `notes` are what the text cannot say, or says only nearly.
    """

    id: str
    label: str
    language: str
    text: str
    release: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """A flag, and the field of the scenario that it sets."""

    flag: str
    path: str
    value: Any


class Reason(StrEnum):
    """Why a flag sets nothing."""

    UNKNOWN = "no flag of the release that was checked"
    NO_FIELD = "known, but the scenario has no field for it"
    WITHOUT_EFFECT = "known; none of the numbers follows from it"
    VALUE = "known, but its value is not understood here"


@dataclass(frozen=True, slots=True)
class Unread:
    """A flag that sets nothing, by name."""

    flag: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class CommandReading:
    """What a launch text says.

    `document` is a scenario document, possibly partial and not yet validated; `missing` names the parts that it lacks.
    `engine` is the id of the engine, `variant` the form of the text, as in `Variant.id`.
    """

    document: dict[str, Any]
    told: tuple[Told, ...]
    unread: tuple[Unread, ...]
    missing: tuple[str, ...]
    engine: str
    variant: str
