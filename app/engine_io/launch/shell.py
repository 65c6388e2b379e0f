"""Shell text taken apart, and words quoted for it: no more of the language than launch commands use.

Nothing is expanded or run. A word keeps its `$NAME` as it stands; comments are dropped.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from app.engine_io.launch.findings import CommandError

MOST_WORDS = 8000
_PLAIN = re.compile(r"[A-Za-z0-9_./:=,@%+-]+")
_PLACEHOLDER = re.compile(r"<[A-Za-z0-9_./ -]{1,60}>")
_ENDS = {"\n", ";", "&", "|", "(", ")"}
_BLANK = {" ", "\t"}


@dataclass(slots=True)
class Script:
    """Commands as lists of words, and the here-documents by the file that they are written to."""

    commands: list[list[str]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


def quote(word: str) -> str:
    """The word as one word of a shell."""
    return word if _PLAIN.fullmatch(word) else "'" + word.replace("'", "'\\''") + "'"


def command_lines(head: str, pairs: Iterable[tuple[str, ...]]) -> str:
    """A command over several lines, a flag with its value on each."""
    lines = [head, *(" ".join(quote(word) for word in pair) for pair in pairs)]
    return " \\\n  ".join(lines)


def read_script(text: str) -> Script:
    """The commands of a shell text.

    Raises:
        CommandError: a quote that is not closed, or a text that is no launch command by its sheer number of words.
    """
    return _Reader(text).read()


class _Reader:
    """One pass over the text, a character at a time."""

    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0
        self.script = Script()
        self.words: list[str] = []
        self.count = 0
        self.awaited: list[tuple[str, bool, list[str]]] = []

    def read(self) -> Script:
        text = self.text
        while self.place < len(text):
            letter = text[self.place]
            if letter in _BLANK or text.startswith("\\\n", self.place):
                self.place += 1 if letter in _BLANK else 2
            elif letter == "#":
                self.place = self._line_end()
            elif letter == "\n":
                self.place += 1
                self._here_documents()
                self._close()
            elif letter in _ENDS:
                self.place += 1
                self._close()
            elif _PLACEHOLDER.match(text, self.place):
                self._add(self._word())
            elif text.startswith("<<", self.place) and not text.startswith("<<<", self.place):
                self._await_document()
            elif letter in "<>":
                self.place += 1
                self._redirection(letter)
            else:
                self._add(self._word())
        self._close()
        return self.script

    def _line_end(self) -> int:
        end = self.text.find("\n", self.place)
        return len(self.text) if end < 0 else end

    def _close(self) -> None:
        if self.words:
            self.script.commands.append(self.words)
            self.words = []

    def _add(self, word: str) -> None:
        self.count += 1
        if self.count > MOST_WORDS:
            raise CommandError(f"The text has more than {MOST_WORDS:,} words: it is no launch command.")
        self.words.append(word)

    def _word(self) -> str:
        parts: list[str] = []
        text = self.text
        while self.place < len(text):
            letter = text[self.place]
            if placeholder := _PLACEHOLDER.match(text, self.place):
                parts.append("<>")
                self.place = placeholder.end()
                continue
            if letter in _BLANK or letter in _ENDS or letter in "<>":
                break
            self.place += 1
            if letter == "'":
                parts.append(self._until("'"))
            elif letter == '"':
                parts.append(self._double_quoted())
            elif letter == "\\":
                following = text[self.place : self.place + 1]
                self.place += 1
                parts.append("" if following == "\n" else following)
            elif letter == "$" and text.startswith("(", self.place):
                parts.append("$" + self._until(")"))
            else:
                parts.append(letter)
        return "".join(parts)

    def _until(self, closing: str) -> str:
        end = self.text.find(closing, self.place)
        if end < 0:
            raise CommandError(f"A {closing} is missing: the command is cut off, or a quote is not closed.")
        found = self.text[self.place : end]
        self.place = end + 1
        return found

    def _double_quoted(self) -> str:
        parts: list[str] = []
        text = self.text
        while self.place < len(text):
            letter = text[self.place]
            self.place += 1
            if letter == '"':
                return "".join(parts)
            if letter == "\\" and text[self.place : self.place + 1] in ("\\", '"', "$", "`", "\n"):
                following = text[self.place]
                self.place += 1
                parts.append("" if following == "\n" else following)
            else:
                parts.append(letter)
        raise CommandError('A " is missing: the command is cut off, or a quote is not closed.')

    def _await_document(self) -> None:
        self.place += 2
        indented = self.text.startswith("-", self.place)
        self.place += indented
        while self.text[self.place : self.place + 1] in _BLANK and self.place < len(self.text):
            self.place += 1
        word = self._word()
        if not word:
            raise CommandError("A here-document has no word to end it.")
        self.awaited.append((word, indented, self.words))

    def _here_documents(self) -> None:
        """Take the lines up to each awaited word; they belong to the file that the command writes."""
        for ending, indented, words in self.awaited:
            lines: list[str] = []
            while True:
                if self.place >= len(self.text):
                    raise CommandError("A here-document is not ended: the text is cut off.")
                end = self._line_end()
                line = self.text[self.place : end]
                self.place = end + 1
                if (line.lstrip("\t") if indented else line) == ending:
                    break
                lines.append(line)
            name = next((word[1:] for word in words if word.startswith(">")), "-")
            self.script.files[name] = "\n".join(lines) + "\n"
        self.awaited.clear()

    def _redirection(self, sign: str) -> None:
        """Where output goes is kept as one word, so that a here-document finds its file."""
        while self.text[self.place : self.place + 1] in (*_BLANK, ">", "&") and self.place < len(self.text):
            self.place += 1
        target = self._word()
        if sign == ">" and target:
            self._add(f">{target}")
