"""What would change the answer: single changes to a scenario, each with its effect, computed and not canned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Any

from app.calc.deployment import Deployment
from app.calc.measure import Measures, measure
from app.calc.memory.capacity import memory
from app.calc.memory.rank import holds
from app.calc.model.attention_variants import Alternative
from app.calc.optimize.candidates import candidates
from app.calc.time.goodput import goodput
from app.calc.verdict import State, state_of

MOST_LEVERS = 8
WORTH_IT = 1.02  # a change that moves nothing by 2 % is noise on a page


class Aim(StrEnum):
    """The number that the user cares about: goodput where targets are set, the pace of a lone user, else throughput."""

    GOODPUT = "goodput_per_s"
    PACE = "tpot_s"
    THROUGHPUT = "output_tokens_per_s"


def aim_of(deployment: Deployment) -> Aim:
    """What levers are ranked by."""
    workload = deployment.workload
    has_targets = workload.slo_ttft_s is not None or workload.slo_tpot_s is not None
    if has_targets and deployment.calibration is not None:
        return Aim.GOODPUT
    return Aim.PACE if workload.concurrency == 1 else Aim.THROUGHPUT


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
    goodput_per_s: Change | None = None

    def gain(self, aim: "Aim") -> float:
        """How many times better the number is that the user cares about; above 1 is an improvement."""
        if aim is Aim.GOODPUT and self.goodput_per_s is not None:
            before, after = self.goodput_per_s.before, self.goodput_per_s.after
            return after / before if before else (inf if after else 1.0)
        if aim is Aim.PACE:
            return self.tpot_s.before / self.tpot_s.after
        return self.output_tokens_per_s.after / self.output_tokens_per_s.before


@dataclass(frozen=True, slots=True)
class Lever:
    """`change` is a merge patch (RFC 7396) on the scenario; `label` says it in words."""

    change: Mapping[str, Any]
    label: str
    effect: Effect


def levers(deployment: Deployment, measures: Measures, alternatives: Sequence[Alternative]) -> tuple[Lever, ...]:
    """The most effective single changes: those that make it fit first, then by what the user cares about.

    Args:
        deployment: what is evaluated now.
        measures: its numbers.
        alternatives: other cards that the scenario could name, of the same maker.
    """
    found, tried, aim = [], list[Deployment](), aim_of(deployment)
    good = _goodput(deployment, measures) if aim is Aim.GOODPUT else 0.0
    for candidate in candidates(deployment, measures, alternatives):
        changed = candidate.deployment
        if changed in tried or not (candidate.holds or _may_help(deployment, measures, changed)):
            continue
        tried.append(changed)
        effect = _effect(deployment, measures, changed, good if aim is Aim.GOODPUT else None)
        if _is_useful(effect, aim):
            found.append(Lever(candidate.change, candidate.label, effect))
    return tuple(sorted(found, key=lambda lever: _rank(lever, aim))[:MOST_LEVERS])


def _may_help(deployment: Deployment, before: Measures, changed: Deployment) -> bool:
    """Memory alone tells of most changes that they do not help; the times are measured of the others only."""
    if state_of(deployment, before) is not State.DOES_NOT_FIT:
        return True
    return holds(changed) or memory(changed).max_concurrency > before.memory.max_concurrency


def _goodput(deployment: Deployment, measures: Measures) -> float:
    found = goodput(deployment, measures)
    return found.rate_per_s if found else 0.0


def _effect(deployment: Deployment, before: Measures, changed: Deployment, good: float | None) -> Effect:
    after = measure(changed)
    return Effect(
        (state_of(deployment, before), state_of(changed, after)),
        Change(before.memory.max_concurrency, after.memory.max_concurrency),
        Change(before.serving.tpot_s.best_known, after.serving.tpot_s.best_known),
        Change(before.serving.output_tokens_per_s.best_known, after.serving.output_tokens_per_s.best_known),
        None if good is None else Change(good, _goodput(changed, after)),
    )


def _is_useful(effect: Effect, aim: Aim) -> bool:
    was, now = effect.state
    if was is State.DOES_NOT_FIT:
        return now is not State.DOES_NOT_FIT or effect.max_concurrency.after > effect.max_concurrency.before
    gains = [effect.gain(aim)] if aim is Aim.GOODPUT else [effect.gain(aim), effect.gain(Aim.THROUGHPUT)]
    faster = max(gains) > WORTH_IT
    roomier = effect.max_concurrency.after > WORTH_IT * effect.max_concurrency.before
    eased = was is State.TIGHT and now is State.FITS
    return now is not State.DOES_NOT_FIT and (faster or roomier or eased)


def _rank(lever: Lever, aim: Aim) -> tuple[bool, bool, float]:
    """What makes it fit, or fit with room to spare, before what only makes it faster."""
    was, now = lever.effect.state
    eases = was is not State.FITS and now is State.FITS
    return now is State.DOES_NOT_FIT, not eases, -lever.effect.gain(aim)
