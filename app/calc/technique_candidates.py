"""Optimizations as single changes that may be worth a try: those that the scenario does not use yet.

Each is the change that its door would open; what a door says at length a lever says in a line.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.calc.attention_variants import AttentionVariant, VariantError, as_variant, own_variant
from app.calc.deployment import Deployment
from app.calc.doors.disaggregation import pool_change, split_in_two
from app.calc.doors.prefix_caching import SYSTEM_SHARE, prefix_change, with_system_prompt
from app.calc.doors.speculative import speculation_change, usual_speculation
from app.calc.split import SplitError
from app.calc.techniques.drafters import remodelled
from app.calc.techniques.speculation import METHOD_WORDS


@dataclass(frozen=True, slots=True)
class Technique:
    """`change` is a merge patch (RFC 7396) on the scenario; `label` says it in words."""

    change: Mapping[str, Any]
    label: str
    deployment: Deployment


def techniques(deployment: Deployment) -> Iterator[Technique]:
    """Every optimization that is not used yet and could be; whether it helps is for the caller to measure.

    Those that move the memory are left out where the cache pool was measured: nothing is known of the other one.
    """
    for find in _ALWAYS:
        yield from find(deployment)
    if deployment.engine.given.kv_pool is None:
        for find in _WHERE_THE_POOL_FOLLOWS:
            yield from find(deployment)


def _pages(deployment: Deployment) -> Iterator[Technique]:
    if deployment.engine.reserved_tokens is not None:
        changed = replace(deployment, engine=replace(deployment.engine, reserved_tokens=None))
        yield Technique({"techniques": {"reserved_tokens": None}}, "Keep the cache in pages", changed)


def _continuous(deployment: Deployment) -> Iterator[Technique]:
    if deployment.engine.is_static:
        changed = replace(deployment, engine=replace(deployment.engine, is_static=False))
        yield Technique({"techniques": {"static_batching": False}}, "Fill places as they fall free", changed)


def _chunks(deployment: Deployment) -> Iterator[Technique]:
    engine = deployment.engine
    if not engine.chunks_prefill:
        changed = replace(deployment, engine=replace(engine, chunks_prefill=True))
        label = f"Prefill in steps of {engine.step_tokens:,} tokens"
        yield Technique({"techniques": {"chunked_prefill": True}}, label, changed)


def _prefix(deployment: Deployment) -> Iterator[Technique]:
    """Not a switch, but what a prompt with a common beginning would be worth."""
    workload = deployment.workload
    if workload.prefix_hit_rate or deployment.engine.shared_tokens or workload.prompt_tokens < 2:
        return
    changed = with_system_prompt(deployment)
    label = f"Let {SYSTEM_SHARE:.0%} of every prompt be the same".replace("%", " %")
    yield Technique(prefix_change(changed), label, changed)


def _guesses(deployment: Deployment) -> Iterator[Technique]:
    if deployment.speculation is not None:
        return
    changed = usual_speculation(deployment)
    speculation = changed.speculation
    assert speculation is not None  # noqa: S101  # it has just been made
    label = (
        f"Guess {speculation.draft_tokens} tokens with {METHOD_WORDS[speculation.method]}, if a step gives "
        f"{speculation.tokens_per_step:.2g}"
    )
    yield Technique(speculation_change(changed), label, changed)


def _grouped(deployment: Deployment) -> Iterator[Technique]:
    """Another model, strictly: what grouping its heads would do."""
    try:
        if own_variant(deployment.architecture) is not AttentionVariant.MHA:
            return
        own = deployment.published_architecture or deployment.architecture
        changed = remodelled(deployment, as_variant(own, AttentionVariant.GQA))
        changed = replace(changed, published_architecture=own)
        changed.architecture.split(deployment.split)
    except (VariantError, SplitError):
        return
    label = "Take a model with grouped attention (GQA)"
    yield Technique({"techniques": {"attention": str(AttentionVariant.GQA)}}, label, changed)


def _apart(deployment: Deployment) -> Iterator[Technique]:
    """Of several replicas some that only prefill; one alone cannot be parted."""
    engine = deployment.engine
    if deployment.prefill_pool is not None or engine.is_static or deployment.replicas < 2:
        return
    changed = split_in_two(deployment)
    change = pool_change(changed)
    if change:
        prefill = changed.gpus - changed.decode_gpus
        label = f"Prefill on {prefill:,} of the GPUs and decode on {changed.decode_gpus:,}"
        yield Technique(change, label, changed)


_Finder = Callable[[Deployment], Iterator[Technique]]
_ALWAYS: tuple[_Finder, ...] = (_continuous, _chunks)
_WHERE_THE_POOL_FOLLOWS: tuple[_Finder, ...] = (_pages, _prefix, _guesses, _grouped, _apart)
