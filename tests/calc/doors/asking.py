"""Doors asked of scenarios: the reference case by hand, answers of the product, and what holds of every door."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from app.calc.alternatives import Alternative
from app.calc.doors.door import Asked, Door, DoorId, Level
from app.calc.doors.sides import figure_at
from app.calc.explanation import FUNCTIONS
from app.calc.measure import measure
from app.refusal import ScenarioError
from app.resolve import resolve
from app.scenario import Scenario
from tests.calc.formulas import computed, symbols
from tests.factories import answer_to, deployment, merge_patch, shipped_catalog

LOADS: tuple[dict[str, Any], ...] = (
    {},
    {"workload": {"prompt_tokens": 1, "output_tokens": 1, "concurrency": 1}},
    {"workload": {"prompt_tokens": 3000, "output_tokens": 100, "concurrency": None}},
    {"workload": {"prompt_tokens": 100, "output_tokens": 100, "concurrency": 5000}},
    {"parallelism": {"tensor": 2}},
)
MODELS = tuple(shipped_catalog().architectures)
CARDS = tuple(shipped_catalog().accelerators)


def by_hand(alternatives: Sequence[Alternative] = (), **changes: Any) -> Asked:
    """The reference case under an ideal engine, without calibration: ceilings only."""
    here = deployment(**changes)
    return Asked(here, measure(here), alternatives)


def of_product(*names: str | Mapping[str, Any], **sections: Any) -> Asked:
    """A scenario of the product."""
    evaluation = answer_to(*names, **sections).evaluation
    return Asked(evaluation.deployment, evaluation.measures, evaluation.alternatives)


@cache
def models_and_cards() -> list[Asked]:
    """Every sixth model on one card, every sixth card with one of the models, under loads in turn."""
    pairs = [(model, "h200-sxm") for model in MODELS[::6]]
    pairs += [(MODELS[place % len(MODELS)], card) for place, card in enumerate(CARDS)][::6]
    found = []
    for place, (model, card) in enumerate(pairs):
        try:
            found.append(of_product(model, card, **LOADS[place % len(LOADS)]))
        except ScenarioError:
            continue  # heads that do not divide, or a card without a rate
    return found


def numbers(door: Door, label: str, level: Level = Level.EXACT) -> tuple[float | None, float | None]:
    """Both sides of a figure."""
    found = figure_at(door.figures, label, level)
    assert found is not None, label
    return found.before, found.after


def column(door: Door, heading: str) -> dict[str, float | None]:
    """A column of the variants by row."""
    assert door.variants is not None
    at = [name for name, _ in door.variants.columns].index(heading)
    return {row.label: row.values[at] for row in door.variants.rows}


def changed(document: dict[str, Any], door: Door) -> Asked:
    """The scenario that a door's change leads to."""
    scenario = Scenario.model_validate(merge_patch(document, door.change))
    here = resolve(scenario, shipped_catalog()).deployment
    return Asked(here, measure(here))


def check(door: Door, id_: DoorId) -> None:
    """What holds of any door, told or refused."""
    assert door.id is id_
    assert door.sentence.endswith(".")
    assert door.label
    if door.refused is not None:
        assert door.refused == door.sentence
        assert not door.figures
        assert not door.change
        return
    assert door.change
    assert door.explanations
    assert door.limits
    assert len({(figure.label, figure.level) for figure in door.figures}) == len(door.figures)
    for figure in door.figures:
        assert all(side is None or math.isfinite(side) for side in (figure.before, figure.after)), figure
    for told in door.explanations:
        assert told.id.startswith(f"doors.{id_}.")
        assert symbols(told.formula) - FUNCTIONS == {term.symbol for term in told.terms}
        values = {term.symbol: term.value for term in told.terms}
        assert math.isclose(computed(told.formula, values), told.value, rel_tol=1e-9, abs_tol=1e-9), told.id
    assert door.variants is not None
    rows = door.variants.rows
    assert sum(row.is_here for row in rows) == 1
    assert len({row.label for row in rows}) == len(rows)
    assert all(len(row.values) == len(door.variants.columns) for row in rows)
