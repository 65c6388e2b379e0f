"""Does it fit: the memory of each GPU divided among weights, cache and the rest, and what the cache then holds.

The engine here is ideal: inside its share of the card it spends nothing on activations, graphs or fragmentation, and
its cache pages are one token long. A real start-up leaves less.
"""

import math
from dataclasses import dataclass

from app.calc.broadcast import scalar
from app.calc.deployment import MOST_CONCURRENT, Deployment
from app.calc.kv_cache import ContextLimit, cache_shape, kv_bytes_per_sequence, longest_context
from app.calc.parameters import count_parameters, weight_bytes

IDEAL_ENGINE_BYTES = 0.0


@dataclass(frozen=True, slots=True)
class PerGpuMemory:
    """Bytes of one card; the five parts sum to `capacity_bytes`.

    `free_bytes` is what the engine may not touch (1 − utilization); it is negative where the weights exceed the card,
    which is how far they exceed it.
    """

    capacity_bytes: float
    weights_bytes: float
    kv_pool_bytes: float
    activation_bytes: float
    overhead_bytes: float
    free_bytes: float


@dataclass(frozen=True, slots=True)
class Memory:
    """What the card holds. Concurrency and context are whole numbers, for an ideal engine.

    `kv_bytes_…` are those of the whole model, each head's cache once, with its states; `gpu_bytes_per_sequence` is what
    one GPU holds of it, copies included. `max_concurrency` is at the full length. `max_context_tokens` is the length
    that each of the scenario's sequences could reach, by memory alone.
    """

    per_gpu: PerGpuMemory
    budget_bytes: float
    kv_bytes_per_sequence: float
    kv_bytes_per_token: float
    state_bytes_per_sequence: float
    gpu_bytes_per_sequence: float
    kv_pool_tokens: int
    max_concurrency: int
    max_context_tokens: int
    context_limit: ContextLimit | None
    running_sequences: int
    needed_bytes: float

    @property
    def headroom_bytes(self) -> float:
        """Bytes of the engine's share left when every running sequence is at its full length; negative: missing."""
        return self.budget_bytes - self.needed_bytes


def kv_pool_bytes(budget_bytes: float, weights_bytes: float, engine_bytes: float = IDEAL_ENGINE_BYTES) -> float:
    """Bytes left for the cache: budget − weights − what the engine itself takes, never below zero.

    Worked number: an H100 SXM reports 81,559 MiB; 0.9 of that less 16.06 GB leaves 60.91 GB.
    """
    return max(0.0, budget_bytes - weights_bytes - engine_bytes)


def whole_sequences(pool_bytes: float, sequence_bytes: float) -> int:
    """Sequences that a pool holds: ⌊pool ÷ bytes of one⌋; a model that keeps nothing sets no limit of its own."""
    return math.floor(pool_bytes / sequence_bytes) if sequence_bytes else MOST_CONCURRENT


def _pool_tokens(pool_bytes: float, sequence_bytes: float, tokens: int) -> int:
    return math.floor(pool_bytes / (sequence_bytes / tokens)) if sequence_bytes else MOST_CONCURRENT * tokens


def memory(deployment: Deployment) -> Memory:
    """The memory of one GPU under `deployment`, per part, and what the pool holds; all GPUs of a replica are alike."""
    rank, engine, workload = deployment.rank_architecture, deployment.engine, deployment.workload
    kv_cache = deployment.precision.kv_cache
    capacity = deployment.accelerator.memory_bytes(deployment.memory_basis)
    budget = capacity * engine.memory_utilization
    weights = weight_bytes(count_parameters(rank), deployment.precision.weights)
    pool = kv_pool_bytes(budget, weights)
    if engine.kv_pool_bytes is not None:
        # Measured beside the weights, so the engine has room for both; but never for more than the card has.
        pool = min(engine.kv_pool_bytes, kv_pool_bytes(capacity, weights))
        budget = min(capacity, weights + pool)
    per_sequence = scalar(kv_bytes_per_sequence(deployment.architecture, workload.total_tokens, kv_cache))
    on_gpu = scalar(kv_bytes_per_sequence(rank, workload.total_tokens, kv_cache))

    fitting = whole_sequences(pool, on_gpu)
    if engine.max_num_seqs is not None:
        fitting = min(fitting, engine.max_num_seqs)
    running = _running_sequences(deployment, fitting)
    share = pool / running
    limit = longest_context(rank, share, kv_cache)
    # Where every layer has a window memory sets no limit; the model does.
    longest = limit.tokens if limit else rank.max_position or workload.total_tokens
    return Memory(
        per_gpu=PerGpuMemory(
            capacity_bytes=capacity,
            weights_bytes=weights,
            kv_pool_bytes=pool,
            activation_bytes=IDEAL_ENGINE_BYTES,
            overhead_bytes=IDEAL_ENGINE_BYTES,
            free_bytes=capacity - weights - pool,
        ),
        budget_bytes=budget,
        kv_bytes_per_sequence=per_sequence,
        kv_bytes_per_token=per_sequence / workload.total_tokens,
        state_bytes_per_sequence=cache_shape(deployment.architecture).state_bytes,
        gpu_bytes_per_sequence=on_gpu,
        kv_pool_tokens=_pool_tokens(pool, on_gpu, workload.total_tokens),
        max_concurrency=fitting,
        max_context_tokens=longest,
        context_limit=limit,
        running_sequences=running,
        needed_bytes=weights + running * on_gpu,
    )


def _running_sequences(deployment: Deployment, fitting: int) -> int:
    """Sequences in a decode step: those asked for, or as many as fit; at least one, so that a floor can be told."""
    wanted = deployment.workload.concurrency
    if wanted is None:
        return max(1, fitting)
    cap = deployment.engine.max_num_seqs
    return wanted if cap is None else min(wanted, cap)
