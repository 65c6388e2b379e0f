"""What would change the answer: single changes to a scenario, each with its effect, computed and not canned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.deployment import Deployment
from app.calc.lever_candidates import Alternative, candidates, holds
from app.calc.measure import Measures, measure
from app.calc.memory import memory
from app.calc.verdict import State, state_of

MOST_LEVERS = 6
WORTH_IT = 1.02  # a change that moves nothing by 2 % is noise on a page


@dataclass(frozen=True, slots=True)
class Change:
    """One number before and after."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Effect:
    """What a lever moves. Times are seconds, as expected; at the ceiling where nothing is calibrated."""

    state: tuple[State, State]
    max_concurrency: Change
    tpot_s: Change
    output_tokens_per_s: Change


@dataclass(frozen=True, slots=True)
class Lever:
    """`change` is a merge patch (RFC 7396) on the scenario; `label` says it in words."""

    change: Mapping[str, Any]
    label: str
    effect: Effect


def levers(deployment: Deployment, measures: Measures, alternatives: Sequence[Alternative]) -> tuple[Lever, ...]:
    """The most effective single changes: those that make it fit first, then by throughput.

    Args:
        deployment: what is evaluated now.
        measures: its numbers.
        alternatives: other cards that the scenario could name, of the same maker.
    """
    found = []
    for candidate in candidates(deployment, measures, alternatives):
        if not (candidate.holds or _may_help(deployment, measures, candidate.deployment)):
            continue
        effect = _effect(deployment, measures, candidate.deployment)
        if _is_useful(effect):
            found.append(Lever(candidate.change, candidate.label, effect))
    return tuple(sorted(found, key=_rank)[:MOST_LEVERS])


def _may_help(deployment: Deployment, before: Measures, changed: Deployment) -> bool:
    """Memory alone tells of most changes that they do not help; the times are measured of the others only."""
    if state_of(deployment, before) is not State.DOES_NOT_FIT:
        return True
    return holds(changed) or memory(changed).max_concurrency > before.memory.max_concurrency


def _effect(deployment: Deployment, before: Measures, changed: Deployment) -> Effect:
    after = measure(changed)
    return Effect(
        (state_of(deployment, before), state_of(changed, after)),
        Change(before.memory.max_concurrency, after.memory.max_concurrency),
        Change(before.serving.tpot_s.best_known, after.serving.tpot_s.best_known),
        Change(before.serving.output_tokens_per_s.best_known, after.serving.output_tokens_per_s.best_known),
    )


def _is_useful(effect: Effect) -> bool:
    was, now = effect.state
    if was is State.DOES_NOT_FIT:
        return now is not State.DOES_NOT_FIT or effect.max_concurrency.after > effect.max_concurrency.before
    faster = effect.output_tokens_per_s.after > WORTH_IT * effect.output_tokens_per_s.before
    roomier = effect.max_concurrency.after > WORTH_IT * effect.max_concurrency.before
    eased = was is State.TIGHT and now is State.FITS
    return now is not State.DOES_NOT_FIT and (faster or roomier or eased)


def _rank(lever: Lever) -> tuple[bool, bool, float]:
    """What makes it fit, or fit with room to spare, before what only makes it faster."""
    was, now = lever.effect.state
    eases = was is not State.FITS and now is State.FITS
    return now is State.DOES_NOT_FIT, not eases, -lever.effect.output_tokens_per_s.after
