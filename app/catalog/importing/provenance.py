"""Where each field of a reading came from, collected while the configuration is read."""

from dataclasses import dataclass, field
from enum import StrEnum


class Origin(StrEnum):
    """How a field got its value; an assumed one is a mark that the user must see."""

    READ = "read"
    DERIVED = "derived"
    DEFAULT = "default"
    ASSUMED = "assumed"


Value = int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class FieldReading:
    """One field of the architecture or of the weight plan. `key` is its full path as the file has it."""

    name: str
    value: Value
    origin: Origin
    key: str | None = None
    note: str = ""


@dataclass(slots=True)
class Ledger:
    """What has been read so far: fields in order, paths that something looked at, and sentences for the user."""

    fields: dict[str, FieldReading] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    notices: list[str] = field(default_factory=list)

    def write(self, reading: FieldReading) -> None:
        """Keep a field; the first reading of a name stays."""
        self.fields.setdefault(reading.name, reading)

    def derive(self, name: str, value: Value, note: str) -> None:
        """Keep a field that was computed from others."""
        self.write(FieldReading(name, value, Origin.DERIVED, note=note))

    def assume(self, name: str, value: Value, note: str) -> None:
        """Keep a field that no key and no documented default gives."""
        self.write(FieldReading(name, value, Origin.ASSUMED, note=note))

    def notice(self, sentence: str) -> None:
        """Keep a sentence for the user, once."""
        if sentence not in self.notices:
            self.notices.append(sentence)
