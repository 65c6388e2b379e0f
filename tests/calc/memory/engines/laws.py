"""Laws with round numbers, so that a pool can be worked out by hand, and ranks divided by a policy."""

from typing import Any

from app.calc.deployment import Engine
from app.calc.memory.engines.parts import Policy, WeightSpread
from app.calc.memory.engines.rules import Law, OverheadLaws
from app.calc.memory.rank import RankMemory, rank_memories
from tests.factories import deployment

GIB = 2**30


def fixed(gib: float, low: float = 1.0, high: float = 1.0, factor: float = 0.0) -> Law:
    """So many GiB, whatever the physics say."""
    return Law(fixed_gib=gib, low=low, high=high, evidence=f"{gib} GiB, by hand.", factor=factor)


def laws(
    activation: Law | None = None,
    alone: Law | None = None,
    with_peers: Law | None = None,
    graphs: Law | None = None,
    weights: WeightSpread | None = None,
) -> OverheadLaws:
    """2 GiB of activations, half a GiB alone and one with peers, a quarter of graphs, unless said otherwise."""
    return OverheadLaws(
        activation=activation or fixed(2),
        alone=alone or fixed(0.5),
        with_peers=with_peers or fixed(1),
        weights=weights or WeightSpread(evidence="By hand."),
        graphs=graphs or fixed(0.25),
    )


def divided(
    policy: Policy, utilization: float = 0.9, *, settings: dict[str, Any] | None = None, **changes: Any
) -> tuple[RankMemory, ...]:
    """One GPU of each stage of the reference case (or of what `changes` make of it) under a policy."""
    engine = Engine("tested", utilization, policy, **settings or {})
    return rank_memories(deployment(engine=engine, **changes))


def only(
    policy: Policy, utilization: float = 0.9, *, settings: dict[str, Any] | None = None, **changes: Any
) -> RankMemory:
    """The same where there is one stage."""
    (rank,) = divided(policy, utilization, settings=settings, **changes)
    return rank
