"""One decode step over a grid of batch and context: the same formulas as an evaluation, a million points at a time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.calc.deployment import Deployment
from app.calc.kv_cache import kv_bytes_per_sequence
from app.calc.memory import memory
from app.calc.operators import decode_operators
from app.calc.phase import ceiling_s

Grid = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DecodeSweep:
    """Arrays of shape (concurrency, context). Times and rates are ceilings; `fits` is 1 where the cache does."""

    decode_step_s: Grid
    decode_tokens_per_s: Grid
    kv_bytes: Grid
    fits: Grid


def decode_sweep(deployment: Deployment, concurrency: Grid, context_tokens: Grid) -> DecodeSweep:
    """The decode step for every pair of the two axes.

    Args:
        deployment: model, card, precision and engine; the concurrency and lengths of its workload are not read.
        concurrency: sequences in a step, shape (n,).
        context_tokens: tokens in each sequence's cache, shape (m,).

    Limits: ceilings for an ideal engine, as everywhere in this package.
    """
    batch, context = np.asarray(concurrency, float)[:, None], np.asarray(context_tokens, float)[None, :]
    held = memory(deployment)
    step = ceiling_s(decode_operators(deployment, batch, context), deployment.accelerator)
    cache = batch * kv_bytes_per_sequence(deployment.architecture, context, deployment.precision.kv_cache)
    step, cache = np.asarray(step), np.asarray(cache)
    return DecodeSweep(step, batch / step, cache, (cache <= held.per_gpu.kv_pool_bytes).astype(float))
