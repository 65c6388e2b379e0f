"""Regular expressions of ignore lists, turned into automata: letters, classes, groups, alternatives and repeats."""

from dataclasses import dataclass, field

from app.catalog.importing.quantization.automaton import (
    MOST_LETTERS,
    MOST_NESTED,
    Accepts,
    Automaton,
    Effort,
    PatternError,
    anything,
    same_letter,
)

CLASSES: dict[str, Accepts] = {
    "d": str.isdigit,
    "w": lambda letter: letter.isalnum() or letter == "_",
    "s": str.isspace,
    "D": lambda letter: not letter.isdigit(),
    "W": lambda letter: not (letter.isalnum() or letter == "_"),
    "S": lambda letter: not letter.isspace(),
}
UNKNOWN = "{}"
LETTER = 25
"""What a letter of an expression costs, in steps, before anything is compared."""
ASCII = tuple(map(chr, range(128)))


def expression(pattern: str, effort: Effort | None = None) -> Automaton:
    """The automaton of a regular expression that must match from the start of a name, as `re.match` does.

    Raises:
        PatternError: it uses what published lists do not, such as looking ahead.
    """
    if len(pattern) > MOST_LETTERS:
        raise PatternError(f"is longer than {MOST_LETTERS} letters.")
    to_the_end = pattern.endswith("$") and not pattern.endswith("\\$")
    starts_anywhere = pattern.removeprefix("^").startswith(".*")
    made = Automaton(effort or Effort(), to_the_end=to_the_end, starts_anywhere=starts_anywhere)
    made.effort.spend(LETTER * len(pattern))
    reader = _Reader(pattern.removeprefix("^")[: -1 if to_the_end else None], made)
    made.start, made.last = reader.alternatives(0)
    if reader.place < len(reader.pattern):
        raise PatternError("has a bracket that was not opened.")
    made.alphabet = reader.letters
    return made


@dataclass(slots=True)
class _Reader:
    pattern: str
    made: Automaton
    place: int = 0
    letters: set[str] = field(default_factory=set)

    def alternatives(self, depth: int) -> tuple[int, int]:
        """Sequences with bars between, as first and last state."""
        if depth > MOST_NESTED:
            raise PatternError("has too many brackets inside each other.")
        first, last = self.made.state(), self.made.state()
        while True:
            start, end = self._sequence(depth)
            self.made.join(first, start)
            self.made.join(end, last)
            if self._next() != "|":
                return first, last
            self.place += 1

    def _next(self) -> str:
        return self.pattern[self.place : self.place + 1]

    def _sequence(self, depth: int) -> tuple[int, int]:
        first = here = self.made.state()
        while self._next() not in ("", "|", ")"):
            start, end = self._repeated(*self._atom(depth))
            self.made.join(here, start)
            here = end
        return first, here

    def _repeated(self, start: int, end: int) -> tuple[int, int]:
        sign = self._next()
        if sign not in ("*", "+", "?"):
            return start, end
        self.place += 1
        if self._next() == "?":  # as few as possible matches the same names
            self.place += 1
        first, last = self.made.state(), self.made.state()
        self.made.join(first, start)
        self.made.join(end, last)
        if sign != "+":
            self.made.join(first, last)
        if sign != "?":
            self.made.join(end, start)
        return first, last

    def _atom(self, depth: int) -> tuple[int, int]:
        sign = self._next()
        self.place += 1
        if sign == "(":
            return self._group(depth)
        if sign == "[":
            return self._one(self._class())
        if sign == "\\":
            return self._one(self._escaped())
        if sign == ".":
            return self._one(anything)
        if sign in "*+?^$" or sign in UNKNOWN:
            raise PatternError(f"has {sign} in a place that is not known here.")
        return self._one(self._same(sign))

    def _one(self, accepts: Accepts) -> tuple[int, int]:
        first, last = self.made.state(), self.made.state()
        self.made.join(first, last, accepts)
        return first, last

    def _group(self, depth: int) -> tuple[int, int]:
        if self._next() == "?":
            if self.pattern[self.place : self.place + 2] != "?:":
                raise PatternError("looks around or names a group, which is not known here.")
            self.place += 2
        inside = self.alternatives(depth + 1)
        if self._next() != ")":
            raise PatternError("has a bracket that is not closed.")
        self.place += 1
        return inside

    def _escaped(self) -> Accepts:
        sign = self._next()
        self.place += 1
        if sign in CLASSES:
            accepts = CLASSES[sign]
            self.letters.update(letter for letter in ASCII if accepts(letter))
            return accepts
        if not sign or sign.isalnum():
            raise PatternError("has an escape that is not known here.")
        return self._same(sign)

    def _same(self, letter: str) -> Accepts:
        self.letters.add(letter)
        return same_letter(letter)

    def _class(self) -> Accepts:
        end = self.pattern.find("]", self.place + 1)
        if end < 0:
            raise PatternError("has a bracket that is not closed.")
        text = self.pattern[self.place : end]
        self.place = end + 1
        negated = text.startswith("^")
        text = text.removeprefix("^")
        letters: set[str] = set()
        place = 0
        while place < len(text):
            if text[place] == "\\":
                raise PatternError("has an escape inside a class, which is not known here.")
            if text[place + 1 : place + 2] == "-" and place + 2 < len(text):
                letters.update(map(chr, range(ord(text[place]), min(ord(text[place + 2]), 0x17F) + 1)))
                place += 3
            else:
                letters.add(text[place])
                place += 1
        self.letters |= letters
        return lambda given: (given in letters) is not negated
