"""YAML as manifests and values files use it, read without anything that could run away.

Block and flow mappings and lists, plain and quoted scalars, literal and folded blocks, comments, several documents.
Anchors, aliases, tags, merge keys and complex keys are refused; scalars stay texts, but null, true and false.
"""

import re
from dataclasses import dataclass
from typing import Any

from app.launch.flow_yaml import MOST_DEPTH, Brackets, Flow, fault
from app.launch.forms import CommandError

MOST_LINES = 4000
_KEY = re.compile(
    r"""("[^"]{0,200}"|'[^']{0,200}'|[^\s"'\[\]{},#&*!|>%@`-][^"'#\n:]{0,200}|-[^\s:"'#][^"'#\n:]{0,200})\s{0,20}:(?=\s|$)"""
)
_BLOCK = re.compile(r"[|>][+-]?[0-9]?\s*(?:#.*)?")


@dataclass(frozen=True, slots=True)
class _Line:
    indent: int
    text: str
    number: int


def read_documents(text: str) -> list[Any]:
    """Every document of a YAML text.

    Raises:
        CommandError: not YAML, or YAML with something that is not read here; names the line.
    """
    if text.count("\n") > MOST_LINES:
        raise CommandError(f"The YAML has more than {MOST_LINES:,} lines.")
    documents, lines = [], list[tuple[int, str]]()
    for number, line in enumerate([*text.split("\n"), "---"], start=1):
        if line.rstrip() in ("---", "...") or line.startswith("--- "):
            if any(content.strip() and not content.lstrip().startswith("#") for _, content in lines):
                documents.append(_Reader(lines).read())
            lines = []
        else:
            lines.append((number, line))
    return documents


class _Reader:
    """One document, by recursive descent over its lines."""

    def __init__(self, lines: list[tuple[int, str]]) -> None:
        self.raw = lines
        self.place = 0

    def read(self) -> Any:
        line = self._peek()
        value = self._node(0 if line is None else line.indent, 0)
        left = self._peek()
        if left is not None:
            raise fault(left.number, "the indentation does not fit")
        return value

    def _peek(self) -> _Line | None:
        """The next line that says something; the place stays at it."""
        while self.place < len(self.raw):
            number, raw = self.raw[self.place]
            text = raw.strip(" \r")
            if text and not text.startswith("#"):
                if raw[: len(raw) - len(raw.lstrip())].count("\t"):
                    raise fault(number, "it is indented by a tab")
                return _Line(len(raw) - len(raw.lstrip(" ")), text, number)
            self.place += 1
        return None

    def _node(self, indent: int, depth: int) -> Any:
        line = self._peek()
        if line is None or line.indent < indent:
            return None
        if depth > MOST_DEPTH:
            raise fault(line.number, f"it is nested deeper than {MOST_DEPTH} levels")
        if line.text == "-" or line.text.startswith("- "):
            return self._list(line.indent, depth)
        if _KEY.match(line.text):
            return self._mapping(line.indent, depth)
        self.place += 1
        return Flow(line.text, line.number).whole()

    def _list(self, indent: int, depth: int) -> list[Any]:
        found: list[Any] = []
        while (line := self._peek()) is not None and line.indent == indent:
            if line.text != "-" and not line.text.startswith("- "):
                break
            rest = line.text[1:].lstrip(" ")
            if not rest or rest.startswith("#"):
                self.place += 1
                found.append(self._node(indent + 1, depth + 1))
            elif _BLOCK.fullmatch(rest):
                self.place += 1
                found.append(self._literal(indent, rest))
            elif rest.startswith("- ") or _KEY.match(rest):
                # The item is a node of its own that begins on the line of its dash.
                inner = indent + len(line.text) - len(rest)
                self.raw[self.place] = (line.number, " " * inner + rest)
                found.append(self._node(inner, depth + 1))
            else:
                self.place += 1
                found.append(self._scalar(rest, line.number, indent))
        return found

    def _mapping(self, indent: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while (line := self._peek()) is not None and line.indent == indent:
            key = _KEY.match(line.text)
            if key is None:
                raise fault(line.number, "a key with a colon is expected")
            name = key[1].strip()
            name = name[1:-1] if name[0] in "\"'" else name
            if name == "<<":
                raise fault(line.number, "merge keys are not read")
            if name in found:
                raise fault(line.number, "a key is there twice")
            found[name] = self._value(line, line.text[key.end() :].strip(), indent, depth)
        return found

    def _value(self, line: _Line, rest: str, indent: int, depth: int) -> Any:
        self.place += 1
        if _BLOCK.fullmatch(rest):
            return self._literal(indent, rest)
        if rest and not rest.startswith("#"):
            return self._scalar(rest, line.number, indent)
        following = self._peek()
        if following is None or following.indent < indent:
            return None
        if following.indent == indent:
            # A list may stand at the indentation of its key; anything else there is the next key.
            is_list = following.text == "-" or following.text.startswith("- ")
            return self._list(indent, depth + 1) if is_list else None
        return self._node(following.indent, depth + 1)

    def _scalar(self, text: str, number: int, indent: int) -> Any:
        """A flow value, which may go on over lines that are indented further, as a long list does."""
        if text[0] not in "[{":
            return Flow(text, number).whole()
        parts, brackets = [text], Brackets()
        brackets.count(text)
        while brackets.are_open and (line := self._peek()) is not None and line.indent >= indent:
            parts.append(line.text)
            brackets.count(line.text)
            self.place += 1
        return Flow(" ".join(parts), number).whole()

    def _literal(self, indent: int, sign: str) -> str:
        """The lines of a literal or folded block, their common indentation taken off."""
        lines: list[str] = []
        inner = 0
        while self.place < len(self.raw):
            raw = self.raw[self.place][1]
            depth = len(raw) - len(raw.lstrip(" "))
            if raw.strip() and depth <= indent:
                break
            if raw.strip() and not inner:
                inner = depth
            lines.append(raw[min(inner, depth) :] if inner else "")
            self.place += 1
        while lines and not lines[-1].strip():
            lines.pop()
        return (" " if sign[0] == ">" else "\n").join(lines) + "\n"
