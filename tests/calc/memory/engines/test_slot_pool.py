"""SGLang's pools of tokens, of windows and of states."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.memory.cache import CachedLayers, CachedRows, CachedState
from app.calc.memory.engines.parts import MOST_CONCURRENT
from app.calc.memory.engines.slot_pool import STATE_RATIO, WINDOW_SHARE, TokenRoom
from tests.calc.formulas import computed
from tests.calc.memory.engines.rooms import check_longest_and_fitting, check_monotone, counts, layers, lengths, pools
from tests.calc.strategies import repeatable

FULL = CachedRows("full", 18, 2048.0, None, False, (1,))
WINDOW = CachedRows("window", 18, 2048.0, 128, False, (1,))
STATE = CachedState("state", 30, 2_146_304.0)
rooms = st.builds(TokenRoom, layers, st.sampled_from([1, 1, 16, 64]))


def test_tokens_of_one_kind_by_hand() -> None:
    found = TokenRoom(CachedLayers((FULL,), ()))
    assert found.cell_bytes == found.unit_bytes == 36_864
    assert found.tokens(1e9) == 27_126
    assert found.fitting(1e9, 1000) == 27
    assert found.longest(1e9, 27) == 1004
    assert found.sequence_bytes(1000) == 36_864_000


def test_pages_are_handed_out_whole() -> None:
    found = TokenRoom(CachedLayers((FULL,), ()), 64)
    assert found.tokens(1e9) == 423 * 64
    assert found.sequence_bytes(65) == 128 * 36_864
    assert found.fitting(1e9, 65) == 211
    assert found.longest(1e9, 5) == 84 * 64


def test_windows_have_a_pool_of_their_own() -> None:
    found = TokenRoom(CachedLayers((FULL, WINDOW), ()))
    assert found.cell_bytes == 36_864 * (1 + WINDOW_SHARE)
    assert found.sequence_bytes(1000) == 1000 * found.cell_bytes
    assert found.sequence_bytes(100) == 125 * found.cell_bytes  # the window pool has 0.8 tokens for each
    alone = TokenRoom(CachedLayers((WINDOW,), ()))
    assert alone.cell_bytes == 36_864


def test_states_have_their_share_first() -> None:
    found = TokenRoom(CachedLayers((FULL,), (STATE,)))
    pool = 10e9
    assert found.token_pool_bytes(pool) == pool / 1.9
    assert found.slots(pool) == math.floor(pool * STATE_RATIO / (1 + STATE_RATIO) / (30 * 2_146_304)) == 73
    assert found.tokens(pool) == math.floor(pool / 1.9 / 36_864)
    assert found.fitting(pool, 1) == 73
    assert found.longest(pool, 74) == 0
    # A sequence takes 1.9 bytes of the pool for each of its tokens', or 1.9 ÷ 0.9 for each of its states'.
    assert found.sequence_bytes(1) == 30 * 2_146_304 / STATE_RATIO * (1 + STATE_RATIO)
    assert found.sequence_bytes(10_000) == 10_000 * 36_864 * (1 + STATE_RATIO)
    # Logs of SGLang 0.5: 0.471 to 0.476 of the whole are states.
    assert pytest.approx(0.4735, abs=0.0026) == STATE_RATIO / (1 + STATE_RATIO)


def test_states_alone_and_nothing_at_all() -> None:
    states = TokenRoom(CachedLayers((), (STATE,)))
    assert states.fitting(1e9, 10**8) == math.floor(1e9 / (30 * 2_146_304)) == 15
    assert (states.longest(1e9, 15), states.longest(1e9, 16)) == (None, 0)
    nothing = TokenRoom(CachedLayers((), ()))
    assert nothing.fitting(0, 1) == MOST_CONCURRENT
    assert nothing.longest(0, 1) is None
    assert nothing.pool_tokens(1e9, 10) == 0


@repeatable
@given(rooms, pools, counts)
def test_longest_and_fitting_agree(found: TokenRoom, pool: float, sequences: int) -> None:
    check_longest_and_fitting(found, pool, sequences)


@repeatable
@given(rooms, pools, pools, lengths, lengths)
def test_more_room_never_holds_less(found: TokenRoom, pool: float, more: float, tokens: int, longer: int) -> None:
    check_monotone(found, pool, more, tokens, longer)


@repeatable
@given(rooms, pools, lengths)
def test_each_pool_holds_its_sequences_and_one_of_them_not_one_more(found: TokenRoom, pool: float, tokens: int) -> None:
    fitting = found.fitting(pool, tokens)
    assert found.tokens(pool) * found.cell_bytes <= found.token_pool_bytes(pool) * (1 + 1e-9)
    if not found.cell_bytes:
        return
    whole = -(-tokens // found.page_tokens) * found.page_tokens
    assert fitting * whole <= found.tokens(pool)
    states = found.layers.state_bytes
    assert fitting * states <= (pool - found.token_pool_bytes(pool)) * (1 + 1e-9) or not states
    if fitting < found.slots(pool):
        assert (fitting + 1) * found.sequence_bytes(tokens) > found.tokens(pool) * found.cell_bytes


@repeatable
@given(rooms, pools, lengths)
def test_sequences_fit_exactly_as_long_as_their_bytes_do(found: TokenRoom, pool: float, tokens: int) -> None:
    """It is by bytes that a verdict tells what fits."""
    fitting, one = found.fitting(pool, tokens), found.sequence_bytes(tokens)
    if one:
        assert fitting * one <= pool * (1 + 1e-9)
        assert (fitting + 1) * one > pool * (1 - 1e-9) or fitting == MOST_CONCURRENT


@repeatable
@given(rooms, pools, lengths, counts)
def test_the_working_computes(found: TokenRoom, pool: float, tokens: int, sequences: int) -> None:
    longest = found.longest(pool, sequences)
    sequence = found.explain_sequence(tokens)
    assert sequence is not None
    for working, value in (
        (found.explain_fitting(pool, tokens), found.fitting(pool, tokens)),
        (found.explain_tokens(pool, tokens), found.pool_tokens(pool, tokens)),
        (sequence, found.sequence_bytes(tokens)),
        *([(found.explain_longest(pool, sequences), longest)] if longest is not None else []),
    ):
        values = {term.symbol: term.value for term in working.terms}
        assert computed(working.formula, values) == pytest.approx(value, rel=1e-12, abs=1)
