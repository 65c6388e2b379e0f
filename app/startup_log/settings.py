"""The settings that an engine prints as one long list of arguments, found by their names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Self

MOST_LISTS = 64
_LONGEST_LIST = 65_536
_MOST_TRIES = 16
_VALUE = re.compile(
    r"""['"]?[ ]?[:=][ ]?(?:'([^'\n]{0,300})'|"([^"\n]{0,300})"|<[A-Za-z_.]{1,60}: ['"]?([^'">\n]{1,60})['"]?>"""
    r"""|([^\s,'"(){}\[\]<>]{1,100}))"""
)
_INSIDE_A_WORD = re.compile(r"[A-Za-z0-9_\-]")
_WHOLE = re.compile(r"-?[0-9]{1,15}")
_REAL = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,20})?")
_FLAGS = {"True": True, "true": True, "False": False, "false": False}


@dataclass(frozen=True, slots=True)
class Settings:
    """Lists of arguments, those that say what is in force before those that say what was asked for.

    What `text` answers is text of the log: it is compared and looked up, and never kept.
    """

    lists: tuple[str, ...]

    @classmethod
    def find(cls, text: str, heads: tuple[str, ...]) -> Self:
        """The lists that begin with one of `heads`, in the order of heads; of equal heads the last goes first."""
        found = [part for head in heads for part in reversed(list(islice(_lists(text, head), MOST_LISTS)))]
        return cls(tuple(found[:MOST_LISTS]))

    def text(self, *names: str) -> str | None:
        """The value of the first of `names` that a list has, as it is written there; "None" is a value."""
        for part in self.lists:
            for name in names:
                if (value := _value(part, name)) is not None:
                    return value
        return None

    def whole(self, *names: str) -> int | None:
        """The same as a whole number."""
        value = self.text(*names)
        return int(value) if value is not None and _WHOLE.fullmatch(value) else None

    def real(self, *names: str) -> float | None:
        """The same as a number."""
        value = self.text(*names)
        return float(value) if value is not None and _REAL.fullmatch(value) else None

    def flag(self, *names: str) -> bool | None:
        """The same as yes or no."""
        return _FLAGS.get(self.text(*names) or "")

    def inside(self, name: str) -> Self | None:
        """The arguments of the object that `name` is; None where there is none, or it is None."""
        for part in self.lists:
            for offset in _places(part, name):
                opened = re.compile(r"""['"]?[ ]?[:=][ ]?['"]?(?:[A-Za-z]{1,60}\(|\{)""").match(part, offset)
                if opened:
                    closed = re.compile(r"[)}]").search(part, opened.end())
                    return type(self)((part[opened.end() : closed.start() if closed else None],))
        return None


def _lists(text: str, head: str) -> Iterator[str]:
    offset = text.find(head)
    while offset >= 0:
        end = text.find("\n", offset)
        behind = offset + len(head)
        yield text[behind : min(len(text) if end < 0 else end, offset + _LONGEST_LIST)]
        offset = text.find(head, behind)


def _places(part: str, name: str) -> Iterator[int]:
    """Where something may follow `name`, which is no part of a longer name there."""
    offset = part.find(name)
    for _ in range(_MOST_TRIES):
        if offset < 0:
            return
        behind = offset + len(name)
        if offset == 0 or not _INSIDE_A_WORD.match(part[offset - 1]):
            yield behind
        offset = part.find(name, behind)


def _value(part: str, name: str) -> str | None:
    for behind in _places(part, name):
        if matched := _VALUE.match(part, behind):
            return next(group for group in matched.groups() if group is not None)
    return None
