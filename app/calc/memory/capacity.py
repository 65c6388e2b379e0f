"""Does it fit: the memory of each GPU divided as the engine divides it, and what the cache then holds.

The engine's policy (`app.calc.engines`) says what it takes beside weights and how it cuts the cache up. Every stage of
a pipeline is divided for itself; the tightest one decides, because a sequence needs room on all of them.
"""

from dataclasses import dataclass

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.memory.cache import cache_shape, kv_bytes_per_sequence
from app.calc.memory.engines.parts import MOST_CONCURRENT, CachePlan, LogLine, Overhead, Part
from app.calc.memory.rank import RankMemory, rank_memories


@dataclass(frozen=True, slots=True)
class PerGpuMemory:
    """Bytes of one card; the five parts sum to `capacity_bytes`.

    `overhead_bytes` are the driver's part, non-framework memory and graphs. `free_bytes` is what the engine does not
    touch; it is negative where the parts exceed the card, which is how far they exceed it.
    """

    capacity_bytes: float
    weights_bytes: float
    kv_pool_bytes: float
    activation_bytes: float
    overhead_bytes: float
    free_bytes: float


@dataclass(frozen=True, slots=True)
class Memory:
    """What the cards hold. Concurrency and context are whole numbers.

    `kv_bytes_…` are those of the whole model, each head's cache once, with its states; `gpu_bytes_per_sequence` is what
    the tightest GPU takes for one of its own, copies and rounding included, and `shared_bytes` what all have in common.
    `kv_pool_tokens` are those that the engine's log prints, of one data-parallel rank; the stage that has fewest
    (`printing`) decides. `max_concurrency` is of the whole deployment, at the full length. Of the running sequences
    `served_sequences` find room at a time, the others wait; where not one does, all are timed
    as if they did. `max_context_tokens` is the length that each of the running sequences could reach, by memory alone.
    """

    per_gpu: PerGpuMemory
    ranks: tuple[RankMemory, ...]
    tightest: RankMemory
    budget_bytes: float
    kv_bytes_per_sequence: float
    kv_bytes_per_token: float
    state_bytes_per_sequence: float
    gpu_bytes_per_sequence: float
    printing: RankMemory
    kv_pool_tokens: int
    kv_pool_tokens_interval: tuple[int, int]
    rank_concurrency: int
    max_concurrency: int
    max_concurrency_interval: tuple[int, int]
    max_context_tokens: int
    context_is_endless: bool
    shortest: RankMemory
    running_sequences: int
    served_sequences: int
    replica_sequences: int
    rank_sequences: int
    needed_bytes: float
    shared_bytes: float
    log_lines: tuple[LogLine, ...]

    @property
    def plan(self) -> CachePlan:
        """How the tightest GPU's pool is cut up."""
        return self.tightest.plan

    @property
    def overheads(self) -> tuple[Overhead, ...]:
        """What else takes memory on the tightest GPU."""
        return self.tightest.overheads

    @property
    def allocates_what_is_asked(self) -> bool:
        """True for an engine without a share, which allocates its cache for the slots it is told."""
        return any(line.id == "context" for line in self.log_lines)

    @property
    def cache_bytes(self) -> float:
        """Cache that the running sequences take on the tightest GPU, complete answers and all."""
        return self.rank_sequences * self.gpu_bytes_per_sequence + self.shared_bytes

    @property
    def refuses_to_start(self) -> bool:
        """True where the engine prints a concurrency and not one longest sequence finds room."""
        return any(line.id == "concurrency" and line.value < 1 for line in self.log_lines)

    @property
    def longest_alone(self) -> int:
        """Tokens that a single sequence can have on the GPU that decides."""
        return self.printing.plan.longest(max(0.0, self.printing.pool.mid), 1) or 0


def memory(deployment: Deployment) -> Memory:
    """The memory of the GPUs under `deployment`, per part, and what their pools hold."""
    engine, workload, kv_cache = deployment.engine, deployment.workload, deployment.precision.kv_cache
    tokens, length = workload.total_tokens, printed_length(deployment)
    ranks = rank_memories(deployment)

    def fitting(rank: RankMemory, pool_bytes: float) -> int:
        if rank.reserved_bytes > max(0.0, pool_bytes):
            return 0  # it does not start
        found = rank.fitting(deployment, pool_bytes, tokens)
        return found if engine.max_num_seqs is None else min(found, engine.max_num_seqs)

    tightest = min(ranks, key=lambda rank: (fitting(rank, rank.pool.mid), rank.pool.mid))
    on_rank = [min(map(fitting, ranks, sides)) for sides in zip(*(rank.pool.sides for rank in ranks), strict=True)]
    # All ranks of an engine use as many tokens as the poorest one has; a stage that keeps none has no say.
    keeping = [rank for rank in ranks if rank.plan.unit_bytes] or list(ranks)
    tokens_of = [[rank.plan.pool_tokens(max(0.0, side), length) for side in rank.pool.sides] for rank in keeping]
    printing = min(zip(tokens_of, keeping, strict=True), key=lambda pair: (pair[0][1], pair[1].pool.mid))[1]
    printed = [min(sides) for sides in zip(*tokens_of, strict=True)]
    engines = deployment.replicas * deployment.split.data
    most = [min(MOST_CONCURRENT, n * engines) for n in on_rank]
    running = _running_sequences(deployment, most[1])
    in_replica = -(-running // deployment.replicas)
    on_gpu = -(-in_replica // deployment.split.data)
    longest = [(rank.longest(deployment, rank.pool.mid, on_gpu), rank) for rank in ranks]
    bounded = [(limit, rank) for limit, rank in longest if limit is not None]
    context, shortest = min(bounded, key=lambda pair: pair[0], default=(None, tightest))
    per_sequence = scalar(kv_bytes_per_sequence(deployment.architecture, tokens, kv_cache))
    one = tightest.plan.sequence_bytes(deployment.held_tokens)
    return Memory(
        per_gpu=_parts(tightest),
        ranks=ranks,
        tightest=tightest,
        budget_bytes=tightest.budget_bytes,
        kv_bytes_per_sequence=per_sequence,
        kv_bytes_per_token=per_sequence / tokens,
        state_bytes_per_sequence=cache_shape(deployment.architecture).state_bytes,
        gpu_bytes_per_sequence=one,
        printing=printing,
        kv_pool_tokens=printed[1],
        kv_pool_tokens_interval=(printed[0], printed[2]),
        rank_concurrency=on_rank[1],
        max_concurrency=most[1],
        max_concurrency_interval=(most[0], most[2]),
        # Where every layer has a window memory sets no limit; the model does.
        max_context_tokens=(deployment.architecture.max_position or tokens) if context is None else context,
        context_is_endless=context is None,
        shortest=shortest,
        running_sequences=running,
        served_sequences=min(running, most[1]) or running,
        replica_sequences=in_replica,
        rank_sequences=on_gpu,
        needed_bytes=tightest.needed_bytes(deployment, on_gpu),
        shared_bytes=tightest.shared_bytes(deployment),
        log_lines=engine.policy.log_lines(printing.rank, max(0.0, printing.pool.mid)),
    )


def printed_length(deployment: Deployment) -> int:
    """The length that token lines are reckoned with: the engine's longest sequence, or for an ideal one the request."""
    if deployment.engine.policy.sees_all and deployment.engine.max_model_len is None:
        return deployment.workload.total_tokens
    return deployment.max_model_len


def _parts(rank: RankMemory) -> PerGpuMemory:
    sizes = {overhead.part: overhead.bytes.mid for overhead in rank.overheads}
    activation = sizes.pop(Part.ACTIVATION, 0.0)
    overhead, pool = sum(sizes.values()), max(0.0, rank.pool.mid)
    return PerGpuMemory(
        capacity_bytes=rank.capacity_bytes,
        weights_bytes=rank.weights.mid,
        kv_pool_bytes=pool,
        activation_bytes=activation,
        overhead_bytes=overhead,
        free_bytes=rank.capacity_bytes - rank.weights.mid - pool - activation - overhead,
    )


def _running_sequences(deployment: Deployment, fitting: int) -> int:
    """Sequences that run: those asked for, or as many as fit; at least one, so that a floor can be told."""
    wanted = deployment.workload.concurrency
    if wanted is None:
        return max(1, fitting)
    cap = deployment.engine.max_num_seqs
    return wanted if cap is None else min(wanted, cap * deployment.replicas * deployment.split.data)
