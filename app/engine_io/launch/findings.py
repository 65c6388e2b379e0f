"""What is read of a launch command and what is written: the forms of both, and the fields that flags set."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ValidationError

from app.calc.time.speculation import Method
from app.scenario.scenario import Engine, Hardware, Model, Parallelism, Precision
from app.scenario.techniques import Disaggregation, Speculative, Techniques

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


MOST_UNREAD = 200
_WHOLE = re.compile(r"[0-9]{1,15}")
_REAL = re.compile(r"[0-9]{0,15}(?:\.[0-9]{0,20})?(?:[eE][+-]?[0-9]{1,3})?")
_FLAG_NAME = re.compile(r"-{1,2}[A-Za-z][A-Za-z0-9_.-]{0,59}")
_UNRESOLVED = re.compile(r"[$`<]|\{\{")
# As vLLM reads numbers: small letters are powers of ten, capitals powers of two.
_SIZES: Mapping[str, int] = {
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "K": 2**10,
    "M": 2**20,
    "G": 2**30,
    "T": 2**40,
}
_YES = {"true": True, "1": True, "on": True, "yes": True, "false": False, "0": False, "off": False, "no": False}
# A part inside another stands before it.
_PARTS: Mapping[str, type[BaseModel]] = {
    "model": Model,
    "hardware": Hardware,
    "precision": Precision,
    "parallelism": Parallelism,
    "engine": Engine,
    "techniques.speculative": Speculative,
    "techniques.disaggregation": Disaggregation,
    "techniques": Techniques,
}
# What the part needs beside the field before it can say whether the field is in range.
_BESIDE: Mapping[str, Mapping[str, Any]] = {
    "model.mtp": {"id": "x"},
    "hardware.count": {"id": "x"},
    "techniques.speculative.draft": {"draft_tokens": 1},
    "techniques.speculative.method": {"draft_tokens": 1},
    "techniques.disaggregation.instances": {"hardware": {"id": "x"}},
    "techniques.disaggregation.tensor": {"hardware": {"id": "x"}},
    "techniques.disaggregation.data": {"hardware": {"id": "x"}},
}


def put(document: dict[str, Any], path: str, value: Any) -> None:
    """Set the field at a dotted path."""
    *parents, last = path.split(".")
    for key in parents:
        inner = document.get(key)
        document[key] = document = inner if isinstance(inner, dict) else {}
    document[last] = value


def get(document: Mapping[str, Any], path: str) -> Any:
    """The field at a dotted path, None where it is not there."""
    value: Any = document
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def shown(name: str) -> str:
    """A flag's name fit to be repeated: a plain word of moderate length, else a stand-in."""
    return name if _FLAG_NAME.fullmatch(name) else "an odd argument"


class Findings:
    """Told by flags (`document`), and inferred from names, images and replicas (`inferred`), which weighs less."""

    def __init__(self) -> None:
        self.document: dict[str, Any] = {}
        self.inferred: dict[str, Any] = {}
        self.told: list[Told] = []
        self.unread: dict[Unread, None] = {}
        self.missing: list[str] = []
        self.guesser: Method | None = None

    def tell(self, flag: str, path: str, value: Any, *, inferred: bool = False) -> None:
        """A flag sets a field.

        Raises:
            CommandError: the value is out of the field's range.
        """
        _check(flag, path, value)
        value = str(value) if isinstance(value, StrEnum) else value
        put(self.inferred if inferred else self.document, path, value)
        self.told = [told for told in self.told if told.path != path]
        self.told.append(Told(flag, path, value))

    def leave(self, flag: str, reason: Reason) -> None:
        """A flag sets nothing. Beyond a number that no launch has, more of them say nothing new."""
        if len(self.unread) >= MOST_UNREAD:
            return
        self.unread.setdefault(Unread(shown(flag), reason))

    def guessed_by(self, flag: str, method: Method) -> None:
        """A flag says who guesses. What needs no word of its own in a scenario gets none: it follows from the rest."""
        self.guesser = method
        if method is not Method.DRAFT_MODEL:
            put(self.document, "techniques.speculative.draft", None)
        if method is Method.EAGLE:
            self.tell(flag, "techniques.speculative.method", method)
        elif method is Method.MTP:
            self.tell(flag, "model.mtp", True)

    def resolved(self, flag: str, text: str) -> bool:
        """False, with the flag left unread, where a value stands for something that the text does not hold."""
        if _UNRESOLVED.search(text):
            self.leave(flag, Reason.VALUE)
            return False
        return True

    def whole(self, flag: str, path: str, text: str | None, *, sizes: bool = False) -> int | None:
        """Set a field to a whole number, which is given back; None where the text leaves it to the engine."""
        if text is None or not self.resolved(flag, text):
            return None
        value = whole(flag, text, sizes=sizes)
        if value is not None:
            self.tell(flag, path, value)
        return value

    def real(self, flag: str, path: str, text: str | None) -> None:
        if text is not None and self.resolved(flag, text):
            self.tell(flag, path, real(flag, text))

    def choice(self, flag: str, path: str, text: str | None, meanings: Mapping[str, Any]) -> None:
        """Set a field to what a word means; "auto" is left to the engine, another word left unread."""
        if text is None or text == "auto":
            return
        if text in meanings:
            self.tell(flag, path, meanings[text])
        else:
            self.leave(flag, Reason.VALUE)


def whole(flag: str, text: str, *, sizes: bool = False) -> int | None:
    """The whole number of a text; None for -1, 0 and "auto", by which engines mean their own choice.

    Raises:
        CommandError: it is none.
    """
    text = text.strip()
    if text in ("-1", "0", "auto"):
        return None
    size = _SIZES.get(text[-1:], 1) if sizes else 1
    digits = text[:-1] if size != 1 else text
    if size != 1 and "." in digits and _REAL.fullmatch(digits) and digits != ".":
        return int(real(flag, digits) * size)
    if not _WHOLE.fullmatch(digits):
        raise CommandError(f"{flag} must be a whole number, written in digits.")
    return int(digits) * size


def real(flag: str, text: str) -> float:
    """The number of a text.

    Raises:
        CommandError: it is none, or no finite one.
    """
    text = text.strip()
    if not _REAL.fullmatch(text) or not any(c.isdigit() for c in text.lower().partition("e")[0]):
        raise CommandError(f"{flag} must be a number, such as 0.9.")
    value = float(text)
    if value == float("inf"):
        raise CommandError(f"{flag} must be a finite number.")
    return value


def yes(flag: str, text: str) -> bool:
    """True or false.

    Raises:
        CommandError: the text is neither.
    """
    if text.strip().lower() not in _YES:
        raise CommandError(f"{flag} must be true or false.")
    return _YES[text.strip().lower()]


def _check(flag: str, path: str, value: Any) -> None:
    part = next((name for name in _PARTS if path.startswith(f"{name}.")), None)
    if part is None or value is None:
        return
    outer, _, inner = path.removeprefix(f"{part}.").partition(".")
    given = {outer: {inner: value} if inner else value}
    beside = _BESIDE.get(path.removesuffix(f".{inner}") if inner else path, {})
    try:
        _PARTS[part].model_validate({**beside, **given})
    except ValidationError as error:
        message = error.errors()[0]["msg"]
        raise CommandError(f"{flag} is out of range: {message[:1].lower()}{message[1:]}.") from error
