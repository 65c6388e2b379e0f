"""What goes wrong while a configuration is read: always a `ConfigError`, and always the key that is to blame."""

from collections.abc import Iterable
from dataclasses import dataclass

MOST_QUOTED = 60


def quoted(text: object) -> str:
    """`text` fit for a message: printable, and no longer than a line can bear."""
    shown = "".join(c if c.isprintable() else "?" for c in str(text)[: MOST_QUOTED + 1])
    return shown if len(shown) <= MOST_QUOTED else f"{shown[:MOST_QUOTED]}…"


class ConfigError(ValueError):
    """A configuration that is not read: `key` is the full path of what is missing, wrong or unknown."""

    def __init__(self, key: str, message: str) -> None:
        self.key, self.message = key, message
        super().__init__(f"{key}: {message}")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A family as which an unknown model could be read, and what speaks for it."""

    read_as: str
    because: str


class UnknownFamilyError(ConfigError):
    """A model type that is not known here; `suggestions` are what its keys look like, the likeliest first."""

    def __init__(self, key: str, message: str, suggestions: Iterable[Suggestion] = ()) -> None:
        self.suggestions = tuple(suggestions)
        super().__init__(key, message)
