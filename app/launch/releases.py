"""The flags that a named release of each engine takes, from `data/<engine>.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

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
        """Every way to write it."""
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
        """The image of a version."""
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
