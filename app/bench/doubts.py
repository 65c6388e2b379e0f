"""What makes a comparison doubtful before a number is looked at: other models, speculation, requests that failed."""

from collections.abc import Sequence

from app.bench.points import BenchPoint
from app.catalog.catalog import Catalog
from app.scenario import Scenario
from app.startup_log.model_names import NamedModel, find_model

_SHOWN = 3


def doubts_about(points: Sequence[BenchPoint], scenario: Scenario, catalog: Catalog) -> list[str]:
    """Sentences about runs whose model, by its name, is not the scenario's, or that are of several; about speculation
    that the scenario has not; about failures.
    """
    return [*_models(points, scenario, catalog), *_speculation(points, scenario), *_failures(points)]


def _models(points: Sequence[BenchPoint], scenario: Scenario, catalog: Catalog) -> list[str]:
    names = list(dict.fromkeys(point.model for point in points if point.model))
    known = {name: find_model(name, catalog.models) for name in names}
    kinds: dict[NamedModel | str, str] = {}
    for name, model in known.items():
        kinds.setdefault(model or name, name)
    found = []
    if len(kinds) > 1:
        found.append(
            f"The runs are of {len(kinds):,} models or formats ({_listed(list(kinds.values()))}). All are laid over "
            "the one that is chosen, and a fit to all of them is that of none: bring them one by one."
        )
    chosen = catalog.models.get(scenario.model.id or "")
    others = [name for name, model in known.items() if chosen and model and model.id != chosen.id]
    if chosen and others:
        found.append(f"The runs name {_listed(others)}, and {chosen.name} is chosen: is that what was measured?")
    return found


def _speculation(points: Sequence[BenchPoint], scenario: Scenario) -> list[str]:
    drafted = [number for number, point in enumerate(points, start=1) if (point.step_tokens or 0) > 1]
    if not drafted or scenario.techniques.speculative is not None:
        return []
    which = (
        f"Run {drafted[0]} was" if len(drafted) == 1 else f"Runs {_listed([str(number) for number in drafted])} were"
    )
    return [
        f"{which} made with speculative decoding, and none is chosen: a decode factor would be that of the drafts, and "
        "change with what is written."
    ]


def _failures(points: Sequence[BenchPoint]) -> list[str]:
    hit = [(number, point) for number, point in enumerate(points, start=1) if point.failed and point.requests]
    if not hit:
        return []
    failed = sum(point.failed or 0 for _, point in hit)
    sent = failed + sum(point.requests or 0 for _, point in hit)
    runs = "run" if len(hit) == 1 else "runs"
    which = _listed([str(number) for number, _ in hit])
    return [
        f"{failed:,} of {sent:,} requests of {runs} {which} failed. Measured are the others: fewer ran at a time than "
        "was asked for, and rates are lower."
    ]


def _listed(names: Sequence[str]) -> str:
    left = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {left:,} more" if left > 0 else "")
