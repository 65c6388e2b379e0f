"""The flags of each release, and the words behind a launcher taken apart by them: which flag has which value."""

import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from app.engine_io.launch.findings import CommandError, Findings, Reason, put

DATA_FOLDER = Path(__file__).resolve().parent / "data"


class Takes(StrEnum):
    """What follows a flag: nothing, one value, several, or perhaps one."""

    SWITCH = "switch"
    VALUE = "value"
    LIST = "list"
    OPTIONAL = "optional"


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag under its first name; `without_effect` where none of our numbers follows from it."""

    name: str
    aliases: tuple[str, ...]
    takes: Takes
    without_effect: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)


@dataclass(frozen=True, slots=True)
class Release:
    """A release of an engine, its image, and its flags under each of their names.

    `options` are the keys of its configuration file that carry something of a scenario, by what they hold.
    """

    engine: str
    name: str
    version: str
    image: str
    tag_prefix: str
    source: str
    flags: Mapping[str, Flag]
    sorted_names: tuple[str, ...]
    options: Mapping[str, str]

    @property
    def label(self) -> str:
        """Such as "vLLM 0.33.0"."""
        return f"{self.name} {self.version}"

    def image_of(self, version: str) -> str:
        return f"{self.image}:{self.tag_prefix}{version}"


@cache
def release_of(engine: str) -> Release:
    """The release against which an engine's flags were checked.

    Raises:
        KeyError: no launch text is known for this engine.
    """
    return _releases()[engine]


@cache
def _releases() -> Mapping[str, Release]:
    found = (_read(file) for file in sorted(DATA_FOLDER.glob("*.toml")))
    return MappingProxyType({release.engine: release for release in found})


def _read(file: Path) -> Release:
    data: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    silent = frozenset(data.get("without_effect", ()))
    flags: dict[str, Flag] = {}
    for takes in Takes:
        for entry in data["flags"].get(takes, ()):
            name, *aliases = entry.split("|")
            flag = Flag(name, tuple(aliases), takes, name in silent)
            flags.update(dict.fromkeys(flag.names, flag))
    options = {key: kind for kind, keys in data.get("options", {}).items() for key in keys}
    return Release(
        engine=data["engine"],
        name=data["name"],
        version=data["release"],
        image=data["image"],
        tag_prefix=data["tag_prefix"],
        source=data["source"],
        flags=MappingProxyType(flags),
        sorted_names=tuple(sorted(flags)),
        options=MappingProxyType(options),
    )


_LOOKS_LIKE_A_FLAG = re.compile(r"--?[A-Za-z]")


@dataclass(slots=True)
class Arguments:
    """Values by the flag's first name, None for a switch that is set; and the words that belong to no flag."""

    values: dict[str, str | None] = field(default_factory=dict)
    positionals: list[str] = field(default_factory=list)
    nested: dict[str, dict[str, object]] = field(default_factory=dict)

    def take(self, name: str) -> str | None:
        """The value of a flag, which then counts as dealt with."""
        return self.values.pop(name, None)

    def take_switch(self, name: str) -> bool | None:
        """Whether a switch is set, None where it is not there."""
        if name not in self.values:
            return None
        return self.values.pop(name) != "false"


def split_arguments(words: Sequence[str], release: Release, findings: Findings) -> Arguments:
    """The arguments of a launcher. What the release does not know is left unread, with the value it seems to have.

    Raises:
        CommandError: a flag without its value, or with two different ones.
    """
    found = Arguments()
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if not _LOOKS_LIKE_A_FLAG.match(word):
            found.positionals.append(word)
            continue
        name, equals, value = word.partition("=")
        given: str | None = value if equals else None
        flag, denied, inner = _look_up(name, release)
        if flag is None:
            findings.leave(name, Reason.UNKNOWN)
            if given is None and place < len(words) and not _LOOKS_LIKE_A_FLAG.match(words[place]):
                place += 1
            continue
        if flag.takes is Takes.SWITCH:
            given = _switch(flag, given, denied)
        elif given is None:
            given, place = _following(flag, words, place)
        if inner:
            put(found.nested.setdefault(flag.name, {}), inner, given)
        elif flag.name in found.values and found.values[flag.name] != given:
            raise CommandError(f"{flag.name} is given twice, with different values.")
        else:
            found.values[flag.name] = given
    return found


def leave_the_rest(arguments: Arguments, release: Release, findings: Findings) -> None:
    """Flags that no reader took: those without effect, and those that the scenario has no field for."""
    for name in arguments.values:
        silent = release.flags[name].without_effect
        findings.leave(name, Reason.WITHOUT_EFFECT if silent else Reason.NO_FIELD)


def _look_up(name: str, release: Release) -> tuple[Flag | None, bool, str]:
    """The flag, whether it was written with "no-" before it, and the key inside its JSON value where one follows."""
    flags = release.flags
    for spelled in _spellings(name):
        if spelled in flags:
            flag = flags[spelled]
            return flag, _denies(spelled) and not _denies(flag.name) and flag.takes is Takes.SWITCH, ""
        positive = flags.get(f"--{spelled[5:]}") if spelled.startswith("--no-") else None
        if positive is not None and positive.takes is Takes.SWITCH:
            return positive, True, ""
    head, dot, inner = name.partition(".")
    if dot and inner and len(inner) < 60:
        for spelled in _spellings(head):
            if spelled in flags and flags[spelled].takes is not Takes.SWITCH:
                return flags[spelled], False, inner.replace("-", "_")
    return _abbreviated(name, release), False, ""


def _denies(name: str) -> bool:
    return name.startswith(("--no-", "-no"))


def _spellings(name: str) -> tuple[str, ...]:
    """Engines take underscores for dashes, or the other way round."""
    if not name.startswith("--"):
        return (name,)
    return (name, "--" + name[2:].replace("_", "-"), "--" + name[2:].replace("-", "_"))


def _abbreviated(name: str, release: Release) -> Flag | None:
    """The one flag whose name begins so: Python's argument parser takes that for the flag."""
    if not name.startswith("--") or len(name) < 4:
        return None
    names = release.sorted_names
    first = bisect_left(names, name)
    meant = {release.flags[one].name for one in names[first : first + 8] if one.startswith(name)}
    return release.flags[meant.pop()] if len(meant) == 1 else None


def _switch(flag: Flag, given: str | None, denied: bool) -> str | None:
    if given is None:
        return "false" if denied else None
    if given.lower() not in ("true", "false", "1", "0"):
        raise CommandError(f"{flag.name} is a switch: it takes no value.")
    return None if (given.lower() in ("true", "1")) is not denied else "false"


def _following(flag: Flag, words: Sequence[str], place: int) -> tuple[str | None, int]:

    def is_value(place: int) -> bool:
        return place < len(words) and not _LOOKS_LIKE_A_FLAG.match(words[place])

    if flag.takes is Takes.LIST:
        start = place
        while is_value(place):
            place += 1
        return " ".join(words[start:place]), place
    if is_value(place):
        return words[place], place + 1
    if flag.takes is Takes.OPTIONAL:
        return None, place
    raise CommandError(f"{flag.name} needs a value.")
