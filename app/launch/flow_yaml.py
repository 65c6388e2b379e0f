"""One value of YAML's flow style: a scalar, or a list or mapping in brackets."""

from typing import Any

from app.launch.forms import CommandError

MOST_DEPTH = 24
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", "0": " ", " ": " "}


def fault(number: int, what: str) -> CommandError:
    """The refusal of a line, by its number."""
    return CommandError(f"The YAML cannot be read at line {number}: {what}.")


class Brackets:
    """Counts brackets outside quotes over lines; decides only where a value ends."""

    def __init__(self) -> None:
        self.depth, self.quoted = 0, ""

    def count(self, text: str) -> None:
        """Take a line into account."""
        for letter in text:
            if self.quoted:
                self.quoted = "" if letter == self.quoted else self.quoted
            elif letter in "\"'":
                self.quoted = letter
            else:
                self.depth += (letter in "[{") - (letter in "]}")

    @property
    def are_open(self) -> bool:
        """Whether a bracket or a quote is still open."""
        return self.depth > 0 or bool(self.quoted)


class Flow:
    """One flow value: a scalar, or a list or mapping in brackets."""

    def __init__(self, text: str, number: int) -> None:
        self.text, self.number, self.place = text, number, 0

    def whole(self) -> Any:
        """The value, which must take up the whole text.

        Raises:
            CommandError: it is no value, or something follows it.
        """
        value = self._value(0, "")
        rest = self.text[self.place :].strip()
        if rest and not rest.startswith("#"):
            raise fault(self.number, "something follows a value")
        return value

    def _skip(self) -> None:
        while self.text[self.place : self.place + 1] == " ":
            self.place += 1

    def _value(self, depth: int, ends: str) -> Any:
        if depth > MOST_DEPTH:
            raise fault(self.number, f"it is nested deeper than {MOST_DEPTH} levels")
        self._skip()
        first = self.text[self.place : self.place + 1]
        if first in ("&", "*", "!") and first:
            raise fault(self.number, "anchors, aliases and tags are not read")
        if first == "[":
            return self._list(depth)
        if first == "{":
            return self._mapping(depth)
        if first and first in "\"'":
            return self._quoted(first)
        return self._plain(ends)

    def _list(self, depth: int) -> list[Any]:
        self.place += 1
        found: list[Any] = []
        while not self._closes("]"):
            found.append(self._value(depth + 1, ",]"))
            self._comma("]")
        return found

    def _mapping(self, depth: int) -> dict[str, Any]:
        self.place += 1
        found: dict[str, Any] = {}
        while not self._closes("}"):
            key = self._value(depth + 1, ":,}")
            self._skip()
            value = None
            if self.text[self.place : self.place + 1] == ":":
                self.place += 1
                value = self._value(depth + 1, ",}")
            if not isinstance(key, (str, bool)) or str(key) in found:
                raise fault(self.number, "a key is no plain word, or there twice")
            found[str(key)] = value
            self._comma("}")
        return found

    def _closes(self, bracket: str) -> bool:
        self._skip()
        if self.place >= len(self.text):
            raise fault(self.number, f"a {bracket} is missing")
        if self.text[self.place] == bracket:
            self.place += 1
            return True
        return False

    def _comma(self, bracket: str) -> None:
        self._skip()
        following = self.text[self.place : self.place + 1]
        if following == ",":
            self.place += 1
        elif following != bracket:
            raise fault(self.number, f"a comma or a {bracket} is missing")

    def _quoted(self, sign: str) -> str:
        self.place += 1
        parts: list[str] = []
        while self.place < len(self.text):
            letter = self.text[self.place]
            self.place += 1
            following = self.text[self.place : self.place + 1]
            if sign == '"' and letter == "\\":
                if following not in _ESCAPES:
                    raise fault(self.number, "an escape is not read")
                parts.append(_ESCAPES[following])
                self.place += 1
            elif letter != sign:
                parts.append(letter)
            elif sign == "'" and following == "'":
                parts.append("'")
                self.place += 1
            else:
                return "".join(parts)
        raise fault(self.number, "a quote is not closed")

    def _plain(self, ends: str) -> Any:
        start = self.place
        while self.place < len(self.text):
            letter = self.text[self.place]
            if letter in ends or (letter == "#" and self.text[self.place - 1 : self.place] == " "):
                break
            self.place += 1
        word = self.text[start : self.place].strip()
        return _WORDS.get(word, word)
