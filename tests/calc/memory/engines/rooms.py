"""Random cache plans of every engine, and what holds for all of them."""

from hypothesis import strategies as st

from app.calc.memory.cache import CachedLayers, CachedRows, CachedState
from app.calc.memory.engines.paged_pool import BlockRoom, plan_blocks
from app.calc.memory.engines.parts import MOST_CONCURRENT, MOST_TOKENS, CachePlan

rows = st.builds(
    CachedRows,
    label=st.sampled_from(["keys and values", "latent"]),
    layers=st.integers(1, 60),
    bytes_per_token=st.sampled_from([1.0, 132.0, 512.0, 1152.0, 4096.0]),
    window=st.none() | st.integers(1, 9000),
    is_chunk=st.booleans(),
    shape=st.tuples(st.integers(1, 9)),
)
states = st.builds(CachedState, st.just("state"), st.integers(1, 60), st.sampled_from([64.0, 131_072.0, 3e6]))
full_rows = st.builds(
    CachedRows,
    st.just("keys and values"),
    st.integers(1, 60),
    st.sampled_from([1.0, 4096.0]),
    st.none(),
    st.just(False),
    st.just((1,)),
)
layers = st.builds(
    CachedLayers,
    st.lists(rows | full_rows, max_size=3).map(tuple),
    st.lists(states, max_size=1).map(tuple),
)
pools = st.floats(0, 3e11) | st.integers(0, 10**7).map(float)
lengths = st.integers(1, 300_000)
counts = st.integers(1, 5000)


def block_rooms() -> st.SearchStrategy[BlockRoom]:
    return st.builds(
        lambda kept, block, step, states, ranks, prints: BlockRoom(
            plan_blocks(kept, block_tokens=block, step_tokens=step, states=states, context_ranks=ranks), prints
        ),
        layers,
        st.integers(1, 128),
        st.integers(1, 9000),
        st.integers(1, 6),
        st.sampled_from([1, 2, 8]),
        st.booleans(),
    )


def check_longest_and_fitting(room: CachePlan, pool: float, sequences: int) -> None:
    """So many sequences can be as long as `longest` says, and not a token longer."""
    longest = room.longest(pool, sequences)
    if longest is None:
        assert room.fitting(pool, MOST_TOKENS) >= min(sequences, MOST_CONCURRENT)
        return
    assert 0 <= longest <= MOST_TOKENS
    if longest:
        assert room.fitting(pool, longest) >= sequences
    if longest < MOST_TOKENS - 1:
        assert room.fitting(pool, longest + 1) < sequences


def check_monotone(room: CachePlan, pool: float, more: float, tokens: int, longer: int) -> None:
    """A larger pool never holds less, and longer sequences are never more."""
    assert room.fitting(pool, tokens) <= room.fitting(pool + more, tokens)
    assert room.fitting(pool, tokens + longer) <= room.fitting(pool, tokens)
    assert room.pool_tokens(pool, tokens) <= room.pool_tokens(pool + more, tokens)
    assert room.sequence_bytes(tokens) <= room.sequence_bytes(tokens + longer)
    now, then = room.longest(pool, 3), room.longest(pool + more, 3)
    assert then is None or (now is not None and now <= then)


def check_whole(room: CachePlan, pool: float, tokens: int) -> None:
    """The sequences that fit stay within the pool, and one more would not."""
    one, fitting = room.sequence_bytes(tokens), room.fitting(pool, tokens)
    assert fitting * one <= pool * (1 + 1e-9)
    if one:
        assert (fitting + 1) * one > (pool - room.unit_bytes) * (1 - 1e-9)
