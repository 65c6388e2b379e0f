"""Optimizations of scenarios: the reference case by hand, answers of the product, and what holds of each of them."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from app.calc.derivation import FUNCTIONS
from app.calc.measure import measure
from app.calc.model.attention_variants import Alternative
from app.calc.optimize.optimization import Asked, Level, Optimization, Quantity, figure_at
from app.scenario.refusal import ScenarioError
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario
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


def numbers(found: Optimization, of: Quantity, level: Level = Level.EXACT) -> tuple[float | None, float | None]:
    """Both sides of a figure."""
    figure = figure_at(found.figures, of.key, level)
    assert figure is not None, of.key
    return figure.before, figure.after


def column(found: Optimization, key: str) -> dict[str, float | None]:
    """A column of the variants by row."""
    assert found.variants is not None
    assert key in [column.key for column in found.variants.columns]
    return {row.label: value for row, value in zip(found.variants.rows, found.variants.numbers(key), strict=True)}


def changed(document: dict[str, Any], found: Optimization) -> Asked:
    """The scenario that a change leads to."""
    scenario = Scenario.model_validate(merge_patch(document, found.change))
    here = resolve(scenario, shipped_catalog()).deployment
    return Asked(here, measure(here))


def check(found: Optimization, id_: str) -> None:
    """What holds of any of them, compared or refused."""
    assert found.id == id_
    assert found.sentence.endswith(".")
    assert found.label
    if found.refused is not None:
        assert found.refused == found.sentence
        assert not found.figures
        assert not found.change
        return
    assert found.change
    assert found.explanations
    assert found.limits
    assert len({(figure.of.key, figure.level) for figure in found.figures}) == len(found.figures)
    for figure in found.figures:
        assert all(side is None or math.isfinite(side) for side in (figure.before, figure.after)), figure
    for told in found.explanations:
        assert told.id.startswith(f"doors.{id_}.")
        assert symbols(told.formula) - FUNCTIONS == {term.symbol for term in told.terms}
        values = {term.symbol: term.value for term in told.terms}
        assert math.isclose(computed(told.formula, values), told.value, rel_tol=1e-9, abs_tol=1e-9), told.id
    assert found.variants is not None
    rows = found.variants.rows
    assert sum(row.is_here for row in rows) == 1
    assert len({row.label for row in rows}) == len(rows)
    assert all(len(row.values) == len(found.variants.columns) for row in rows)
