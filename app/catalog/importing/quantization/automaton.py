"""A small matcher of regular expressions and globs that takes linear time, whatever it is given.

The patterns come from strangers' files, and Python's own engine can be made to run for years. This one walks sets of
states, numbers the sets it has met, and knows only what published ignore lists use.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

MOST_LETTERS = 400
MOST_NESTED = 10
MOST_SETS = 2_000
"""Sets of states that are remembered; a pattern that needs more is refused."""

Accepts = Callable[[str], bool]


class PatternError(ValueError):
    """A pattern that this matcher does not know; the message says what of it."""


@dataclass(slots=True)
class Automaton:
    """States with edges that a letter opens or that are free; `last` is reached by a match."""

    edges: list[list[tuple[Accepts | None, int]]] = field(default_factory=list)
    start: int = 0
    last: int = 0
    to_the_end: bool = True
    starts_anywhere: bool = False
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
        if not self._sets:
            self._number(self._freely({self.start}))
        here, ends, steps = 0, self._ends, self._steps
        for letter in name:
            if ends[here] and (letter == "." or not self.to_the_end):
                return True
            there = steps[here].get(letter)
            here = self._step(here, letter) if there is None else there
        return ends[here]

    def _step(self, here: int, letter: str) -> int:
        reached = {
            there for state in self._sets[here] for accepts, there in self.edges[state] if accepts and accepts(letter)
        }
        there = self._number(self._freely(reached))
        self._steps[here][letter] = there
        return there

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
            for accepts, there in self.edges[waiting.pop()]:
                if accepts is None and there not in seen:
                    seen.add(there)
                    waiting.append(there)
        return frozenset(seen)


def glob(pattern: str) -> Automaton:
    """A pattern with `*` for anything and `?` for one letter.

    Raises:
        PatternError: too long.
    """
    if len(pattern) > MOST_LETTERS:
        raise PatternError(f"is longer than {MOST_LETTERS} letters.")
    made = Automaton(starts_anywhere=pattern.startswith("*"))
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
