"""What would change the answer: single changes to a scenario, each with its effect, computed and not canned."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.calc.accelerator import Accelerator
from app.calc.deployment import MOST_CONCURRENT, Deployment
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.layers.parts import SplitError
from app.calc.measure import Measures, measure
from app.calc.verdict import State, required_bytes, state_of
from app.calc.weight_plan import convention

MOST_LEVERS = 4
MOST_CARDS = 8  # of one node
WORTH_IT = 1.02  # a change that moves nothing by 2 % is noise on a page


@dataclass(frozen=True, slots=True)
class Change:
    """One number before and after."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Effect:
    """What a lever moves. Times are seconds, all ceilings."""

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


@dataclass(frozen=True, slots=True)
class _Candidate:
    change: Mapping[str, Any]
    label: str
    deployment: Deployment


def levers(deployment: Deployment, measures: Measures, alternatives: Sequence[Accelerator]) -> tuple[Lever, ...]:
    """The most effective single changes, best first.

    Args:
        deployment: what is evaluated now.
        measures: its numbers.
        alternatives: other cards that the scenario could name, of the same maker.
    """
    found = [
        Lever(candidate.change, candidate.label, _effect(deployment, measures, candidate.deployment))
        for candidate in _candidates(deployment, measures, alternatives)
    ]
    useful = [lever for lever in found if _is_useful(lever.effect)]
    return tuple(sorted(useful, key=_rank)[:MOST_LEVERS])


def _candidates(
    deployment: Deployment, measures: Measures, alternatives: Iterable[Accelerator]
) -> Iterator[_Candidate]:
    yield from _narrower_cache(deployment)
    yield from _narrower_weights(deployment)
    yield from _other_concurrency(deployment, measures)
    yield from _shorter_prompt(deployment, measures)
    yield from _more_cards(deployment, measures)
    yield from _next_card(deployment, measures, alternatives)


def _narrower_cache(deployment: Deployment) -> Iterator[_Candidate]:
    precision = deployment.precision
    if precision.kv_cache.bits > Dtype.FP8.bits:
        changed = replace(precision, kv_cache=Dtype.FP8)
        patch = {"precision": {"kv_cache": "fp8"}}
        yield _Candidate(patch, "Keep the cache in FP8", replace(deployment, precision=changed))


def _narrower_weights(deployment: Deployment) -> Iterator[_Candidate]:
    """Narrower weights. A measured pool is kept: they would leave at least as much room for it."""
    precision, rates = deployment.precision, deployment.accelerator.peak_flops_per_s
    bits, model = precision.weights.narrowest.element.bits, deployment.architecture
    if bits > Dtype.FP8.bits and Dtype.FP8 in rates:
        changed = replace(precision, weights=convention(WeightFormat.FP8, model), compute=Dtype.FP8)
        patch = {"precision": {"weights": "fp8", "compute": "fp8"}}
        yield _Candidate(patch, "Weights and arithmetic in FP8", replace(deployment, precision=changed))
    if bits > Dtype.INT4.bits:
        wide = deployment.wide_dtype
        changed = replace(precision, weights=convention(WeightFormat.INT4, model), compute=wide)
        patch = {"precision": {"weights": "int4", "compute": str(wide)}}
        label = f"Weights in INT4, arithmetic in {str(wide).upper()}"
        yield _Candidate(patch, label, replace(deployment, precision=changed))


def _other_concurrency(deployment: Deployment, measures: Measures) -> Iterator[_Candidate]:
    fitting = min(measures.memory.max_concurrency, MOST_CONCURRENT)
    wanted = deployment.workload.concurrency
    if wanted is None or fitting < 1 or fitting == wanted:
        return
    changed = replace(deployment, workload=replace(deployment.workload, concurrency=fitting))
    verb = "Serve as many at a time as fit" if fitting > wanted else "Serve fewer at a time"
    yield _Candidate({"workload": {"concurrency": fitting}}, f"{verb}: {fitting:,}", changed)


def _shorter_prompt(deployment: Deployment, measures: Measures) -> Iterator[_Candidate]:
    workload = deployment.workload
    prompt = measures.memory.max_context_tokens - workload.output_tokens
    if state_of(deployment, measures) is not State.DOES_NOT_FIT or not 1 <= prompt < workload.prompt_tokens:
        return
    changed = replace(deployment, workload=replace(workload, prompt_tokens=prompt))
    patch = {"workload": {"prompt_tokens": prompt}}
    yield _Candidate(patch, f"Shorten the prompt to {prompt:,} tokens", changed)


def _more_cards(deployment: Deployment, measures: Measures) -> Iterator[_Candidate]:
    """The fewest further cards, by tensor parallelism in powers of two, that hold what these cannot."""
    if state_of(deployment, measures) is not State.DOES_NOT_FIT or deployment.engine.kv_pool_bytes is not None:
        return
    ranks = 2 * deployment.tensor_parallel
    while ranks <= MOST_CARDS:
        changed = replace(deployment, tensor_parallel=ranks)
        try:
            fits = state_of(changed, measure(changed)) is not State.DOES_NOT_FIT
        except SplitError:
            return
        if fits:
            patch = {"hardware": {"count": ranks}, "parallelism": {"tensor": ranks}}
            yield _Candidate(patch, f"Split the model over {ranks:,} GPUs", changed)
            return
        ranks *= 2


def _next_card(deployment: Deployment, measures: Measures, alternatives: Iterable[Accelerator]) -> Iterator[_Candidate]:
    """The smallest card that holds what this one cannot; or, where it fits, the next one with more bandwidth."""
    if deployment.engine.kv_pool_bytes is not None:
        return  # a pool measured on this card says nothing of another's
    here, basis = deployment.accelerator, deployment.memory_basis
    share = deployment.engine.memory_utilization
    needed = required_bytes(deployment, measures)
    holds = [
        card
        for card in alternatives
        if card.id != here.id
        and deployment.precision.compute in card.peak_flops_per_s
        and card.memory_bytes(basis) * share >= needed
        and card.bandwidth_bytes_per_s >= here.bandwidth_bytes_per_s
    ]
    if state_of(deployment, measures) is not State.DOES_NOT_FIT:
        holds = [card for card in holds if card.bandwidth_bytes_per_s > here.bandwidth_bytes_per_s * 1.1]
        card = min(holds, key=lambda card: (card.bandwidth_bytes_per_s, card.memory_bytes(basis)), default=None)
    else:
        card = min(holds, key=lambda card: (card.memory_bytes(basis), card.bandwidth_bytes_per_s), default=None)
    if card is not None:
        yield _Candidate({"hardware": {"id": card.id}}, f"Move to {card.name}", replace(deployment, accelerator=card))


def _effect(deployment: Deployment, before: Measures, changed: Deployment) -> Effect:
    after = measure(changed)
    return Effect(
        (state_of(deployment, before), state_of(changed, after)),
        Change(before.memory.max_concurrency, after.memory.max_concurrency),
        Change(before.serving.tpot_s.ceiling, after.serving.tpot_s.ceiling),
        Change(before.serving.output_tokens_per_s.ceiling, after.serving.output_tokens_per_s.ceiling),
    )


def _is_useful(effect: Effect) -> bool:
    if effect.state[0] is State.DOES_NOT_FIT:
        return effect.state[1] is not State.DOES_NOT_FIT or effect.max_concurrency.after > effect.max_concurrency.before
    faster = effect.output_tokens_per_s.after > WORTH_IT * effect.output_tokens_per_s.before
    roomier = effect.max_concurrency.after > WORTH_IT * effect.max_concurrency.before
    return effect.state[1] is not State.DOES_NOT_FIT and (faster or roomier)


def _rank(lever: Lever) -> tuple[bool, float]:
    effect = lever.effect
    return effect.state[1] is State.DOES_NOT_FIT, -effect.output_tokens_per_s.after
