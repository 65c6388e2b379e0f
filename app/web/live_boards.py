"""What a round of readings says, made once for each round and question, however many viewers ask."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from app.catalog.catalog import Catalog
from app.live.board import Board, board_of
from app.probes.sampler import Sampler, Snapshots
from app.probes.snapshot import ProbeSnapshot
from app.refusal import ScenarioError
from app.resolve import resolve
from app.scenario import Scenario
from app.scenario_query import BY_NAME
from app.web.query import scenario_from
from app.web.typed_servers import SOURCE, TypedServers
from app.web.urls import Items

MOST_QUESTIONS = 64
T = TypeVar("T")


class Newest(Generic[T]):
    """What was made of the newest round by question: the same snapshots give the same thing. Of bounded size."""

    def __init__(self, make: Callable[[Snapshots, Items], T]) -> None:
        self._make = make
        self._made: OrderedDict[tuple[tuple[str, str], ...], tuple[Snapshots, T]] = OrderedDict()

    def of(self, latest: Snapshots, items: Items) -> T:
        """The thing for `latest` and the question that `items` are."""
        question = tuple(items)
        made = self._made.get(question)
        if made is None or not _same(made[0], latest):
            made = latest, self._make(latest, items)
            self._made[question] = made
        self._made.move_to_end(question)
        if len(self._made) > MOST_QUESTIONS:
            self._made.popitem(last=False)
        return made[1]


class LiveBoards:
    """Boards by question. Belongs to one event loop."""

    def __init__(self, sampler: Sampler, typed: TypedServers, catalog: Catalog) -> None:
        self._sampler, self._typed, self._catalog = sampler, typed, catalog
        self._newest = Newest(self._board)

    def of(self, latest: Snapshots, items: Items) -> Board:
        """What `latest` says beside the prediction that `items` ask for. A question with an error in it is as good as
        none: whoever asked it has been told when the page was made.
        """
        return self._newest.of(latest, items)

    def _board(self, latest: Snapshots, items: Items) -> Board:
        try:
            asked = asked_of(items, self._catalog)
        except ScenarioError:
            asked = None
        named = [self._typed.history_of(snapshot) for snapshot in latest if snapshot.source == SOURCE]
        history = [*self._sampler.history, *(round_ for rounds in named for round_ in rounds)]
        return board_of(latest, history, asked, self._catalog)


def asked_of(items: Items, catalog: Catalog) -> Scenario | None:
    """The scenario that was asked for; None where none was.

    Raises:
        ScenarioError: something in it is wrong, each at its path.
    """
    given = [(name, value) for name, value in items if name in BY_NAME]
    if not any(value for _, value in given):
        return None
    return resolve(scenario_from(given), catalog).scenario


def _same(one: Sequence[ProbeSnapshot], other: Sequence[ProbeSnapshot]) -> bool:
    """Whether both hold the same snapshots, not only equal ones; a kept round keeps its snapshots from being reused."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
