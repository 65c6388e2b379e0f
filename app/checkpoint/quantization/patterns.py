"""Names, globs and regular expressions of ignore lists, matched by RE2 in linear time.

The patterns come from strangers' files, and Python's own engine can be made to run for years. All patterns of a file
share one `Effort`: what they may cost together.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from time import thread_time
from typing import Any

import re2


@dataclass(frozen=True, slots=True, eq=False)
class PartIndex:
    """Parts go by their places in the layer.

    `boxes` finds them by a name or a box around it, the whole layer being the box without a name; `paths` by any steps
    of a name that follow each other. `names` are all names, and `owners` the parts that go by each.
    """

    everything: tuple[int, ...]
    boxes: Mapping[str, tuple[int, ...]]
    paths: Mapping[str, tuple[int, ...]]
    names: tuple[str, ...]
    owners: tuple[tuple[int, ...], ...]


@lru_cache(maxsize=256)
def index_of(names: tuple[tuple[str, ...], ...]) -> PartIndex:
    """The index of parts with these names."""
    boxes: dict[str, dict[int, None]] = {}
    paths: dict[str, dict[int, None]] = {}
    whole: dict[str, dict[int, None]] = {}
    for part, own in enumerate(names):
        for name in own:
            whole.setdefault(name, {})[part] = None
            steps = name.split(".")
            for start in range(len(steps)):
                for end in range(start + 1, len(steps) + 1):
                    path = ".".join(steps[start:end])
                    paths.setdefault(path, {})[part] = None
                    if not start:
                        boxes.setdefault(path, {})[part] = None
    everything = tuple(range(len(names)))
    return PartIndex(
        everything,
        {path: tuple(parts) for path, parts in boxes.items()} | {"": everything},
        {path: tuple(parts) for path, parts in paths.items()},
        tuple(whole),
        tuple(tuple(parts) for parts in whole.values()),
    )


MOST_LETTERS = 400
MOST_READ = 100_000_000
"""Letters of names that all patterns of a file may read together; RE2 reads some hundred million a second."""
MOST_SECONDS = 1.0
"""Processor time for the same: a pattern with more states than fit into `MEMORY` is a hundred times as slow."""
MEMORY = 1 << 18
FOUND = 1000
"""What a name that is found costs, in letters."""
COMPILED = 25_000
_REFUSED = re.compile(
    r"""\\(?P<escape>[^\W_dDwWsS]|$)|\((?P<look>\?)(?!:)|(?P<sign>[{}$]|(?<!\[)\^|\[:)|\\.""", re.DOTALL
)
_OPTIONS = re2.Options()
_OPTIONS.max_mem = MEMORY
_OPTIONS.log_errors = False
_OPTIONS.never_nl = True
_OPTIONS.never_capture = True


class PatternError(ValueError):
    """A pattern that is not read here; the message says what of it."""


@dataclass(slots=True)
class Effort:
    """Letters and processor time spent so far. Whoever wants more than there is, is refused."""

    spent: int = 0
    seconds: float = 0.0

    def spend(self, letters: int) -> None:
        """Count letters before they are read.

        Raises:
            PatternError: too many.
        """
        self.spent += letters
        if self.spent > MOST_READ or self.seconds > MOST_SECONDS:
            raise PatternError("takes too long to compare with every layer, together with the others.")


@dataclass(frozen=True, slots=True)
class Matcher:
    """A pattern that means a name, or a box around it: a and a.b are boxes around a.b.c.

    `starts_anywhere`: what stands before a name does not matter to it. `literal`: what a name begins with.
    """

    compiled: Any
    starts_anywhere: bool
    literal: str
    effort: Effort = field(compare=False)

    def found(self, text: bytes) -> Iterator[int]:
        """The lines of `text` that hold a name that is meant; each line holds one name."""
        self.effort.spend(len(text))
        started = thread_time()
        places = [match.start() for match in self.compiled.finditer(text)]
        self.effort.seconds += thread_time() - started
        self.effort.spend(FOUND * len(places))
        line = before = 0
        for place in places:
            line += text.count(b"\n", before, place)
            before = place
            yield line

    def matches(self, *names: str) -> bool:
        return next(self.found("\n".join(names).encode()), None) is not None


def glob(pattern: str, effort: Effort | None = None) -> Matcher:
    """A pattern with `*` for anything and `?` for one letter.

    Raises:
        PatternError: too long.
    """
    body = "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in pattern)
    literal = re.split(r"[*?]", pattern)[0]
    return _matcher(pattern, body + r"(?:\.|$)", pattern.startswith("*"), literal, effort or Effort())


def expression(pattern: str, effort: Effort | None = None) -> Matcher:
    """A regular expression that must match from the start of a name, as `re.match` does.

    Raises:
        PatternError: it uses what published lists do not, such as looking ahead.
    """
    body = pattern.removeprefix("^")
    to_the_end = body.endswith("$") and not body.endswith("\\$")
    body = body[:-1] if to_the_end else body
    for refused in _REFUSED.finditer(body):
        if refused["escape"] is not None:
            raise PatternError("has an escape that is not known here.")
        if refused["look"]:
            raise PatternError("looks around or names a group, which is not known here.")
        if refused["sign"]:
            raise PatternError(f"has {refused['sign']} in a place that is not known here.")
    has_branches = "|" in re.sub(r"\([^()]*\)|\[[^]]*\]", "", body)
    starts_anywhere = body.startswith(".*") and not has_branches
    return _matcher(pattern, body + (r"(?:\.|$)" if to_the_end else ""), starts_anywhere, "", effort or Effort())


def _matcher(pattern: str, body: str, starts_anywhere: bool, literal: str, effort: Effort) -> Matcher:
    if len(pattern) > MOST_LETTERS:
        raise PatternError(f"is longer than {MOST_LETTERS} letters.")
    effort.spend(COMPILED)
    try:
        re2.compile(body, options=_OPTIONS)  # by itself, so that no bracket of it closes the one around it
        compiled = re2.compile(f"(?m)^(?:{body})", options=_OPTIONS)
    except re2.error as error:
        said = str(error)
        if "missing" in said:
            raise PatternError("has a bracket that is not closed.") from None
        if "unexpected )" in said:
            raise PatternError("has a bracket that was not opened.") from None
        raise PatternError("is no regular expression, or a too intricate one.") from None
    return Matcher(compiled, starts_anywhere, literal, effort)
