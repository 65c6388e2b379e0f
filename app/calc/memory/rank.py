"""One GPU of each pipeline stage, divided by the engine's policy."""

from dataclasses import dataclass, replace
from functools import lru_cache

from app.calc.deployment import Deployment, stage_architectures
from app.calc.memory.engines.parts import CachePlan, Draft, Interval, Overhead, Part, Rank, Settings
from app.calc.model.architecture import Architecture
from app.calc.model.parameters import count_parameters, weight_bytes
from app.calc.model.split import ONE_GPU, Split, SplitError

DRIVER_EVIDENCE = "What the driver reports less what start-up logs say the engine sees."


@dataclass(frozen=True, slots=True)
class RankMemory:
    """The memory of one GPU of a stage; the GPUs of a stage are alike.

    `held_back_bytes` is what neither weights nor cache may use of the engine's share. `pool` may be negative: so much
    is missing. `reserved_bytes` of cache are allocated when the engine starts, whatever runs.
    """

    stage: int
    rank: Rank
    capacity_bytes: float
    seen_bytes: float
    budget_bytes: float
    held_back_bytes: float
    weights: Interval
    overheads: tuple[Overhead, ...]
    pool: Interval
    is_pool_given: bool
    plan: CachePlan
    policy_name: str
    reserved_bytes: float = 0.0

    @property
    def layers(self) -> int:
        return self.rank.architecture.n_layers

    def overhead(self, part: Part) -> Interval:
        """The bytes of one part; nothing where the engine has none."""
        return next((o.bytes for o in self.overheads if o.part is part), Interval.exactly(0.0))

    def is_charged(self, part: Part) -> bool:
        """True where the part comes out of the engine's share."""
        return any(o.is_charged for o in self.overheads if o.part is part)

    def shared_bytes(self, deployment: Deployment) -> float:
        """Cache of the tokens that all sequences have in common, once."""
        shared = deployment.shared_tokens
        return self.plan.sequence_bytes(shared) if shared else 0.0

    def own_bytes(self, deployment: Deployment, pool_bytes: float) -> float:
        """What is left of a pool beside what all sequences share."""
        return max(0.0, pool_bytes - self.shared_bytes(deployment))

    def fitting(self, deployment: Deployment, pool_bytes: float, tokens: int) -> int:
        """Sequences of so many tokens that a pool holds at a time, each with what it takes room for of its own."""
        return self.plan.fitting(self.own_bytes(deployment, pool_bytes), deployment.held(tokens))

    def longest(self, deployment: Deployment, pool_bytes: float, sequences: int) -> int | None:
        """The length that each of so many sequences can reach in a pool; None where memory sets no limit.

        Where room is reserved for a length, no sequence outgrows it, and none runs where there is less.
        """
        found = self.plan.longest(self.own_bytes(deployment, pool_bytes), sequences)
        if found is None:
            return None
        reserved = deployment.engine.reserved_tokens
        reached = found + deployment.shared_tokens if found else 0
        return reached if reserved is None or reached >= reserved else 0

    def needed_bytes(self, deployment: Deployment, sequences: int) -> float:
        """Of the share: what is held back, the weights, and the cache of so many sequences at full length."""
        own = sequences * self.plan.sequence_bytes(deployment.held_tokens)
        cache = max(self.reserved_bytes, own + self.shared_bytes(deployment))
        return self.held_back_bytes + self.weights.mid + cache


def rank_memories(deployment: Deployment) -> tuple[RankMemory, ...]:
    """One GPU of every stage, first to last."""
    parts = stage_architectures(deployment.architecture, deployment.split)
    settings = _settings(deployment)
    ranks = []
    for place, part in enumerate(parts):
        plan = deployment.precision.weights
        padding = deployment.engine.policy.padding_bytes(part, plan)
        counted = weight_bytes(count_parameters(part), plan) + padding
        draft = deployment.draft if part.holds_head else None
        if draft is not None:
            draft = _draft_part(draft, deployment.split.tensor)
            counted += weight_bytes(count_parameters(draft.architecture), draft.weights)
        rank = Rank(
            part,
            deployment.architecture,
            deployment.split,
            deployment.precision.kv_cache,
            settings,
            counted,
            draft,
            deployment.accelerator.shares_memory,
            deployment.accelerator.is_bus_linked,
        )
        ranks.append(_divide(deployment, place, rank))
    return tuple(ranks)


@lru_cache(maxsize=256)
def draft_split(drafter: Architecture, ranks: int) -> Split:
    """How what guesses is split: as the model's layers are, among the tensor ranks; whole on each where it does not
    divide.
    """
    try:
        drafter.split(Split(ranks))
    except SplitError:
        return ONE_GPU
    return Split(ranks)


def _draft_part(draft: Draft, ranks: int) -> Draft:
    return replace(draft, architecture=draft.architecture.split(draft_split(draft.architecture, ranks)))


def _settings(deployment: Deployment) -> Settings:
    engine = deployment.engine
    return Settings(
        utilization=engine.memory_utilization,
        max_model_len=deployment.max_model_len,
        is_length_set=engine.max_model_len is not None,
        step_tokens=engine.step_tokens,
        max_num_seqs=engine.max_num_seqs,
        profiled_seqs=engine.profiled_seqs,
        block_tokens=engine.block_tokens,
        prefix_caching=engine.prefix_caching,
        is_eager=engine.is_eager,
        draft_tokens=engine.draft_tokens,
        given=engine.given,
    )


def _divide(deployment: Deployment, stage: int, rank: Rank) -> RankMemory:
    policy, given, basis = deployment.engine.policy, deployment.engine.given, deployment.memory_basis
    card, settings = deployment.accelerator, rank.settings
    capacity = card.memory_bytes(basis)
    seen = given.total_memory or (capacity if policy.sees_all else card.seen_bytes(basis))
    capacity = max(capacity, seen)
    if given.weights is not None:
        weights = Interval.exactly(given.weights)
    else:
        weights = policy.weights.interval(rank.weights_bytes)
    overheads = policy.overheads(rank, seen)
    if not policy.sees_all:
        driver = Overhead(
            Part.DRIVER, Interval.exactly(capacity - seen), given.total_memory is not None, False, DRIVER_EVIDENCE
        )
        overheads = (driver, *overheads)
    budget, pool = policy.budget_bytes(seen, overheads, settings), policy.pool(seen, weights, overheads, settings)
    held_back = budget - weights.mid - pool.mid
    if given.kv_pool is not None:
        # Measured beside the weights, so the engine has room for both. Weights that are only counted yield to a pool
        # that the card can hold; no pool makes a card larger than it is.
        if given.weights is None and given.kv_pool <= seen and weights.mid > capacity - given.kv_pool:
            weights = Interval.exactly(capacity - given.kv_pool)
        pool = Interval.exactly(min(given.kv_pool, max(0.0, capacity - weights.mid)))
        charged = sum(overhead.bytes.mid for overhead in overheads if overhead.is_charged)
        held_back = max(0.0, min(charged, capacity - weights.mid - pool.mid))
        budget = min(capacity, weights.mid + pool.mid + held_back)
    plan = policy.plan(rank)
    return RankMemory(
        stage=stage,
        rank=rank,
        capacity_bytes=capacity,
        seen_bytes=seen,
        budget_bytes=budget,
        held_back_bytes=held_back,
        weights=weights,
        overheads=overheads,
        pool=pool,
        is_pool_given=given.kv_pool is not None,
        plan=plan,
        policy_name=policy.name,
        reserved_bytes=policy.reserved_bytes(rank, plan),
    )


def holds(deployment: Deployment) -> bool:
    """Whether every stage's share holds what is asked, by the engine's own rules."""
    engines, cap = deployment.replicas * deployment.split.data, deployment.engine.max_num_seqs
    sequences = -(-(deployment.workload.concurrency or 1) // engines)
    running = sequences if cap is None else min(sequences, cap)
    return all(rank.needed_bytes(deployment, running) <= rank.budget_bytes for rank in rank_memories(deployment))
