"""What the tokens of a server are counted with: the prediction at the load that it had when they came."""

from collections.abc import Callable, Iterable
from functools import lru_cache

from pydantic import ValidationError

from app.answer import answer
from app.calc.evaluation import Evaluation
from app.catalog.catalog import Catalog
from app.live.loaded import is_idle, under_load, workload_of
from app.probes.snapshot import ProbeSnapshot
from app.refusal import ScenarioError
from app.scenario import Scenario

Counting = Callable[[ProbeSnapshot], Evaluation | None]
"""The evaluation for a server's snapshot; None where nothing is known of it, or no request runs."""

DIGITS = 2
LOADS_KEPT = 256
_Load = tuple[tuple[str, float], ...]


def counting_by(newest: Iterable[tuple[ProbeSnapshot, Scenario, Evaluation | None]], catalog: Catalog) -> Counting:
    """For a server's snapshot under the load of its newest one the evaluation that there is; for another its own.

    Loads are told apart by two digits: a dot of the tail is off by some hundredths at most, and what hardly differs is
    computed once.
    """
    known = {
        snapshot.source: (scenario.model_dump_json(), None if found is None else _load_of(snapshot), found)
        for snapshot, scenario, found in newest
    }

    def counted_with(snapshot: ProbeSnapshot) -> Evaluation | None:
        if snapshot.server is None or snapshot.source not in known or is_idle(snapshot.server):
            return None
        scenario, now, found = known[snapshot.source]
        load = _load_of(snapshot)
        return found if load == now else _evaluated(scenario, load, catalog)

    return counted_with


def _load_of(snapshot: ProbeSnapshot) -> _Load:
    workload = {} if snapshot.server is None else workload_of(snapshot.server)
    return tuple((name, _coarse(value)) for name, value in workload.items())


def _coarse(value: float) -> float:
    return type(value)(float(f"{value:.{DIGITS}g}"))


@lru_cache(maxsize=LOADS_KEPT)
def _evaluated(scenario: str, load: _Load, catalog: Catalog) -> Evaluation | None:
    try:
        return answer(under_load(Scenario.model_validate_json(scenario), dict(load)), catalog).evaluation
    except (ScenarioError, ValidationError):
        return None
