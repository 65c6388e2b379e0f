"""A small matcher of regular expressions and globs that takes linear time, whatever it is given.

The patterns come from strangers' files, and Python's own engine can be made to run for years. This one walks sets of
states, numbers the sets it has met, and knows only what published ignore lists use. All patterns of a file share one
`Effort`: what they may cost together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

MOST_LETTERS = 400
MOST_NESTED = 10
MOST_SETS = 2_000
"""Sets of states that are remembered; a pattern that needs more is refused."""
MOST_STEPS = 750_000
"""Steps that all patterns of a file may take; one is a letter's look-up, about 50 ns."""
NEW_STEP = 40
"""What it costs, in steps, to find out where a letter leads that was not met before."""
GLOB_LETTER = 14
ACCEPTED = -1
"""The state after which nothing more matters: the name is meant."""
OTHER = ""
"""Stands for every letter that a pattern does not tell from the rest."""

Accepts = Callable[[str], bool]


class PatternError(ValueError):
    """A pattern that this matcher does not know; the message says what of it."""


@dataclass(slots=True)
class Effort:
    """Steps taken so far. Whoever wants more than `most` is refused."""

    spent: int = 0
    most: int = MOST_STEPS

    def spend(self, steps: int) -> None:
        """Count steps.

        Raises:
            PatternError: too many.
        """
        self.spent += steps
        if self.spent > self.most:
            raise PatternError("takes too long to compare with every layer, together with the others.")


@dataclass(slots=True)
class Automaton:
    """States with edges that a letter opens or that are free; `last` is reached by a match.

    `alphabet` are the letters that the pattern tells apart; None for all of them.
    """

    effort: Effort = field(default_factory=Effort)
    edges: list[list[tuple[Accepts | None, int]]] = field(default_factory=list)
    start: int = 0
    last: int = 0
    to_the_end: bool = True
    starts_anywhere: bool = False
    alphabet: set[str] | None = None
    _numbers: dict[frozenset[int], int] = field(default_factory=dict)
    _sets: list[frozenset[int]] = field(default_factory=list)
    _steps: list[dict[str, int]] = field(default_factory=list)
    _ends: list[bool] = field(default_factory=list)

    def state(self) -> int:
        """A new state."""
        self.edges.append([])
        return len(self.edges) - 1

    def join(self, here: int, there: int, accepts: Accepts | None = None) -> None:
        """An edge between two states."""
        self.edges[here].append((accepts, there))

    def matches(self, name: str) -> bool:
        """Whether the pattern means `name`, or a box around it: a and a.b are boxes around a.b.c.

        A pattern that need not match to the end means every name that it matches the beginning of.
        """
        return self.accepts(self.run(self.first(), name))

    def first(self) -> int:
        """Where every match begins."""
        return 0 if self._sets else self._number(self._freely({self.start}))

    def accepts(self, here: int) -> bool:
        """Whether a name that ends here is meant."""
        return here == ACCEPTED or self._ends[here]

    def may_accept(self, here: int) -> bool:
        """Whether a name that goes on from here can be meant."""
        return here == ACCEPTED or bool(self._sets[here])

    def is_settled(self, here: int) -> bool:
        """Whether what follows cannot change the verdict."""
        return here == ACCEPTED or not self._sets[here]

    def run(self, here: int, text: str) -> int:
        """Where `text` leads."""
        self.effort.spend(len(text))
        for letter in text:
            if here == ACCEPTED or (self._ends[here] and (letter == "." or not self.to_the_end)):
                return ACCEPTED
            there = self._steps[here].get(letter)
            here = self._step(here, letter) if there is None else there
        return here

    def matching(self, start: int, names: Sequence[tuple[int, str]]) -> list[int]:
        """The places of the names that are meant.

        Each is given by how many letters it has in common with the one before, and those that follow.
        """
        met, found = [start], []
        for place, (shared, rest) in enumerate(names):
            del met[shared + 1 :]
            here = met[-1]
            if not self.is_settled(here):
                self.effort.spend(len(rest))
                for letter in rest:
                    if self._ends[here] and (letter == "." or not self.to_the_end):
                        met.append(ACCEPTED)
                        break
                    there = self._steps[here].get(letter)
                    here = self._step(here, letter) if there is None else there
                    met.append(here)
                    if not self._sets[here]:
                        break
                here = met[-1]
            if self.accepts(here):
                found.append(place)
        return found

    def _step(self, here: int, letter: str) -> int:
        row = self._steps[here]
        is_told_apart = self.alphabet is None or letter in self.alphabet or not letter.isascii()
        kind = letter if is_told_apart else OTHER
        if kind not in row:
            states = self._sets[here]
            self.effort.spend(NEW_STEP + 3 * sum(len(self.edges[state]) for state in states))
            reached = {there for state in states for accepts, there in self.edges[state] if accepts and accepts(letter)}
            row[kind] = self._number(self._freely(reached))
        row[letter] = row[kind]
        return row[letter]

    def _number(self, states: frozenset[int]) -> int:
        if states not in self._numbers:
            if len(self._sets) >= MOST_SETS:
                raise PatternError("is too intricate.")
            self._numbers[states] = len(self._sets)
            self._sets.append(states)
            self._steps.append({})
            self._ends.append(self.last in states)
        return self._numbers[states]

    def _freely(self, states: set[int]) -> frozenset[int]:
        waiting, seen = list(states), set(states)
        while waiting:
            edges = self.edges[waiting.pop()]
            self.effort.spend(len(edges))
            for accepts, there in edges:
                if accepts is None and there not in seen:
                    seen.add(there)
                    waiting.append(there)
        return frozenset(seen)


def glob(pattern: str, effort: Effort | None = None) -> Automaton:
    """A pattern with `*` for anything and `?` for one letter.

    Raises:
        PatternError: too long.
    """
    if len(pattern) > MOST_LETTERS:
        raise PatternError(f"is longer than {MOST_LETTERS} letters.")
    made = Automaton(effort or Effort(), starts_anywhere=pattern.startswith("*"), alphabet=set(pattern))
    made.effort.spend(GLOB_LETTER * len(pattern))
    here = made.start = made.state()
    for letter in pattern:
        if letter == "*":
            made.join(here, here, anything)
            continue
        there = made.state()
        made.join(here, there, anything if letter == "?" else same_letter(letter))
        here = there
    made.last = here
    return made


def anything(_: str) -> bool:
    """Any letter."""
    return True


def same_letter(letter: str) -> Accepts:
    """That letter."""
    return lambda given: given == letter
