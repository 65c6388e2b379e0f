"""What is wrong with something that was sent: refusals, each at its path, told all together."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Refusal:
    """One thing wrong with a scenario: where (a dotted path), and what to do about it."""

    path: str
    message: str


class ScenarioError(ValueError):
    """The scenario names something unknown or not computed. All refusals together, each at its path."""

    def __init__(self, refusals: Iterable[Refusal]) -> None:
        self.refusals = tuple(refusals)
        super().__init__("; ".join(f"{r.path}: {r.message}" for r in self.refusals))


@contextmanager
def under(path: str) -> Iterator[None]:
    """Refusals raised inside stand below `path`, where the scenario is a part of what was sent."""
    try:
        yield
    except ScenarioError as error:
        raise ScenarioError(Refusal(f"{path}.{r.path}", r.message) for r in error.refusals) from error


def unknown(path: str, noun: str, given: str, known: Mapping[str, object]) -> Refusal:
    """The refusal of an id that the catalog does not have, with those that come near."""
    holding = [name for name in known if given in name]
    near = holding[:3] or get_close_matches(given, known, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return Refusal(path, f"There is no {noun} {given!r} in the catalog.{hint}")
