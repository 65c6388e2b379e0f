"""The optimizations, in the order in which they are shown."""

from collections.abc import Iterator

from app.calc.deployment import Deployment
from app.calc.optimize import (
    attention,
    batching,
    chunked_prefill,
    disaggregation,
    newer_card,
    paging,
    parallelism,
    prefix_caching,
    quantization,
    speculative,
)
from app.calc.optimize.optimization import Asked, Candidate, Optimization

SPECS = (
    quantization.SPEC,
    attention.SPEC,
    paging.SPEC,
    batching.SPEC,
    prefix_caching.SPEC,
    chunked_prefill.SPEC,
    speculative.SPEC,
    disaggregation.SPEC,
    parallelism.SPEC,
    newer_card.SPEC,
)
_KEEP_THE_POOL = (batching.SPEC, chunked_prefill.SPEC)
_MOVE_THE_POOL = (paging.SPEC, prefix_caching.SPEC, speculative.SPEC, attention.SPEC, disaggregation.SPEC)


def optimizations(asked: Asked) -> tuple[Optimization, ...]:
    """Each optimization on the scenario that is asked about."""
    return tuple(spec.compare(asked) for spec in SPECS)


def candidates(deployment: Deployment) -> Iterator[Candidate]:
    """Every optimization that is not used yet and could be; whether it helps is for the caller to measure.

    Those that move the memory are left out where the cache pool was measured: nothing is known of the other one.
    """
    for spec in _KEEP_THE_POOL if deployment.engine.given.kv_pool is not None else (*_KEEP_THE_POOL, *_MOVE_THE_POOL):
        found = spec.candidate(deployment)
        if found is not None:
            yield found
