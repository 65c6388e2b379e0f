"""One decode step over a grid of batch and context: the same formulas as an evaluation, a million points at a time.

What was measured under the old conditions, and is forgotten where a change ends them.
"""

import math
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.calc.deployment import Deployment
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.memory.rank import RankMemory, rank_memories
from app.calc.time.expected.timing import efficiency_of, prompts_of, request_stay, step_time
from app.calc.time.operators import decode_operators
from app.calc.time.phase import ceiling_s

Grid = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DecodeSweep:
    """Arrays of shape (concurrency, context). Times and rates are ceilings; `fits` is 1 where the cache does.

    `expected_…` are what servers reach: the step, and the time between tokens with the prefills of the workload's other
    prompts in it. None where nothing is calibrated.
    """

    decode_step_s: Grid
    decode_tokens_per_s: Grid
    kv_bytes: Grid
    fits: Grid
    expected_step_s: Grid | None = None
    expected_tpot_s: Grid | None = None


def decode_sweep(deployment: Deployment, concurrency: Grid, context_tokens: Grid) -> DecodeSweep:
    """The decode step for every pair of the two axes.

    Args:
        deployment: model, card, precision, engine and split; its workload's concurrency and lengths are not read.
        concurrency: sequences of the whole deployment, shape (n,).
        context_tokens: tokens in each sequence's cache, shape (m,).

    Limits: times are ceilings; what fits is what the engine's rules give.
    """
    batch, context = np.asarray(concurrency, float)[:, None], np.asarray(context_tokens, float)[None, :]
    on_replica = np.maximum(1.0, np.floor(batch / deployment.replicas))  # of the least busy one, as in `replica_batch`
    step = ceiling_s(decode_operators(deployment, on_replica, context), deployment.accelerator)
    cache = batch * kv_bytes_per_sequence(deployment.architecture, context, deployment.precision.kv_cache)
    step, cache = np.asarray(step, dtype=float), np.asarray(cache, dtype=float)
    fits = _fits(deployment, batch[:, 0], context[0]).astype(float)
    expected = _expected(deployment, on_replica[:, 0], context[0])
    return DecodeSweep(step, batch * deployment.tokens_per_step / step, cache, fits, *expected)


ROWS_AT_A_TIME = 16
"""Rows of the grid timed together: their arrays stay in the processor's cache."""


def _expected(deployment: Deployment, on_replica: Grid, context: Grid) -> tuple[Grid | None, Grid | None]:
    """The expected step, and the expected time between tokens."""
    if deployment.calibration is None:
        return None, None
    efficiency = efficiency_of(deployment, deployment.calibration)
    prompts = prompts_of(deployment, deployment.calibration, on_replica.max(initial=1.0))
    steps = np.empty((len(on_replica), len(context)))
    tpots = np.empty_like(steps)
    for start in range(0, len(on_replica), ROWS_AT_A_TIME):
        rows = slice(start, start + ROWS_AT_A_TIME)
        batch = on_replica[rows, None]
        step = step_time(deployment, efficiency, batch, context[None, :]).total_s
        found = request_stay(deployment, efficiency, batch, step, prompts.time, prompts.first_s)
        steps[rows], tpots[rows] = step, found.tpot_s
    return steps, tpots


def _fits(deployment: Deployment, concurrency: Grid, context_tokens: Grid) -> NDArray[np.bool_]:
    """Whether every GPU's pool holds its share of the sequences. Engines hand out whole blocks, so their plans are
    asked, along the shorter axis: how many of each length fit, or how long so many can be.
    """
    ranks = rank_memories(deployment)
    on_gpu, tokens = np.ceil(concurrency / (deployment.replicas * deployment.split.data)), np.ceil(context_tokens)
    if any(rank.pool.mid < 0 for rank in ranks):
        return np.zeros((len(on_gpu), len(tokens)), dtype=bool)
    if len(on_gpu) < len(tokens):
        longest = [min(_longest(deployment, rank, int(sequences)) for rank in ranks) for sequences in on_gpu]
        return tokens[None, :] <= np.array(longest)[:, None]
    fitting = [min(rank.fitting(deployment, rank.pool.mid, int(length)) for rank in ranks) for length in tokens]
    return on_gpu[:, None] <= np.array(fitting)[None, :]


def _longest(deployment: Deployment, rank: RankMemory, sequences: int) -> float:
    found = rank.longest(deployment, rank.pool.mid, sequences)
    return math.inf if found is None else found


MEASURED_PARTS = MappingProxyType(
    {
        "total_memory": "total_memory_bytes",
        "weights": "weights_bytes",
        "activation": "activation_bytes",
        "non_framework": "non_framework_bytes",
        "graphs": "graph_bytes",
    }
)
"""Fields of `Given` that follow from the setting they were measured in, and their names in a scenario's engine."""
POOL = "kv_pool"
"""The field of the measured pool: what is left of all the others."""
OF_CARD = ("total_memory", "non_framework")
"""What was measured of a card, and says nothing of another."""
_KEYS = MappingProxyType({**MEASURED_PARTS, POOL: "kv_pool_bytes"})


def forgetting(deployment: Deployment, *names: str) -> tuple[Deployment, dict[str, None]]:
    """The deployment without measurements that a change would make untrue, and the patch of its engine that drops them.

    Args:
        deployment: what the measurements were given with.
        names: fields of `Given`; what was not given needs no dropping.
    """
    given = deployment.engine.given
    known = [name for name in names if getattr(given, name) is not None]
    if not known:
        return deployment, {}
    nothing: dict[str, Any] = dict.fromkeys(known)
    engine = replace(deployment.engine, given=replace(given, **nothing))
    return replace(deployment, engine=engine), {_KEYS[name]: None for name in known}


def patch_of(forgotten: dict[str, None], **sections: Any) -> dict[str, Any]:
    """A merge patch (RFC 7396) of a scenario's sections, and of its engine where something is dropped there."""
    return sections | ({"engine": dict(forgotten)} if forgotten else {})
