"""What a pool of blocks holds: sequences, tokens in both forms of the log, and the longest sequence."""

import pytest
from hypothesis import given

from app.calc.memory.cache import CachedLayers, CachedRows, CachedState
from app.calc.memory.engines.paged_pool import BlockRoom, plan_blocks
from app.calc.memory.engines.parts import MOST_CONCURRENT
from tests.calc.formulas import computed
from tests.calc.memory.engines.rooms import (
    block_rooms,
    check_longest_and_fitting,
    check_monotone,
    check_whole,
    counts,
    lengths,
    pools,
)
from tests.calc.strategies import repeatable

FULL = CachedRows("full", 10, 100.0, None, False, (1,))
WINDOW = CachedRows("window", 30, 100.0, 512, False, (1,))


def room(*kept: CachedRows, states: tuple[CachedState, ...] = (), prints_concurrency: bool = True) -> BlockRoom:
    plan = plan_blocks(CachedLayers(kept, states), block_tokens=16, step_tokens=1024, states=2)
    return BlockRoom(plan, prints_concurrency)


def test_one_group_by_hand() -> None:
    found = room(FULL)
    assert found.unit_bytes == 16 * 1000
    assert found.blocks(1_000_000) == 62
    assert found.sequence_bytes(17) == 2 * 16_000
    assert found.fitting(1_000_000, 17) == 31
    assert found.pool_tokens(1_000_000, 4096) == 62 * 16  # both forms of the line are the same with one group
    assert found.block_tokens_line(1_000_000) == found.concurrency_tokens_line(1_000_000, 4096)
    assert found.longest(1_000_000, 4) == 15 * 16
    assert found.concurrency(1_000_000, 4096) == 62 / 256


def test_several_groups_by_hand() -> None:
    found = room(FULL, WINDOW)  # groups of 10: one full, three of windows
    assert found.unit_bytes == 16_000
    one = 63 + 3 * (63 + 1)  # 1,000 tokens: ⌈1,000 ÷ 16⌉, and of a window ⌈min(511 + 1,024, 1,000) ÷ 16⌉ + 1
    assert found.sequence_bytes(1000) == one * 16_000
    assert found.fitting(510 * 16_000, 1000) == 2
    assert found.fitting(509 * 16_000, 1000) == 1
    assert found.block_tokens_line(510 * 16_000) == 127 * 16
    assert found.concurrency_tokens_line(510 * 16_000, 1000) == 2000
    assert found.longest(510 * 16_000, 2) == 1008  # the last token of the 63rd block
    assert room(FULL, WINDOW, prints_concurrency=False).pool_tokens(510 * 16_000, 1000) == 127 * 16


def test_a_model_that_keeps_nothing_sets_no_limit() -> None:
    found = BlockRoom(None, prints_concurrency=True)
    assert (found.unit_bytes, found.blocks(1e9), found.sequence_bytes(1000)) == (0, 0, 0)
    assert found.fitting(0, 1000) == found.concurrency(0, 1000) == MOST_CONCURRENT
    assert found.longest(0, 5) is None
    assert found.pool_tokens(1e9, 1000) == 0
    assert found.explain_sequence(10) is None


def test_windows_and_states_alone_set_no_length() -> None:
    windows = room(WINDOW)
    assert windows.longest(96 * 16 * 3000 + 16 * 3000, 1) is None  # ⌈1,535 ÷ 16⌉ + 1 = 97 blocks
    assert windows.longest(96 * 16 * 3000, 1) == 95 * 16
    recurrent = room(states=(CachedState("state", 4, 1000.0),))
    assert recurrent.longest(2 * 4000, 1) is None
    assert recurrent.longest(2 * 4000 - 1, 1) == 0


@pytest.mark.parametrize("pool", [0.0, -5.0, 15_999.0])
def test_a_pool_of_less_than_a_block_holds_nothing(pool: float) -> None:
    assert (room(FULL).blocks(pool), room(FULL).fitting(pool, 1), room(FULL).longest(pool, 1)) == (0, 0, 0)


@repeatable
@given(block_rooms(), pools, counts)
def test_longest_and_fitting_agree(found: BlockRoom, pool: float, sequences: int) -> None:
    check_longest_and_fitting(found, pool, sequences)


@repeatable
@given(block_rooms(), pools, pools, lengths, lengths)
def test_more_room_never_holds_less(found: BlockRoom, pool: float, more: float, tokens: int, longer: int) -> None:
    check_monotone(found, pool, more, tokens, longer)


@repeatable
@given(block_rooms(), pools, lengths)
def test_the_pool_holds_its_sequences_and_not_one_more(found: BlockRoom, pool: float, tokens: int) -> None:
    if found.plan is not None:
        check_whole(found, pool, tokens)
        blocks = found.blocks(pool)
        assert found.fitting(pool, tokens) == blocks // max(1, found.plan.blocks_of(tokens))
        assert blocks * found.unit_bytes <= pool < (blocks + 1) * found.unit_bytes


@repeatable
@given(block_rooms(), pools, lengths, counts)
def test_the_working_computes(found: BlockRoom, pool: float, tokens: int, sequences: int) -> None:
    sequence, longest = found.explain_sequence(tokens), found.longest(pool, sequences)
    workings = [
        (found.explain_fitting(pool, tokens), found.fitting(pool, tokens)),
        (found.explain_tokens(pool, tokens), found.pool_tokens(pool, tokens)),
        *([(sequence, found.sequence_bytes(tokens))] if sequence else []),
        *([(found.explain_longest(pool, sequences), longest)] if longest is not None else []),
    ]
    for working, value in workings:
        values = {term.symbol: term.value for term in working.terms}
        assert len(values) == len(working.terms)
        assert computed(working.formula, values) == pytest.approx(value, rel=1e-12, abs=1)
