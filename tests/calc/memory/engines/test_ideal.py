"""The ideal engine: the bytes of the formulas, and nothing besides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.dtypes import Dtype
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.memory.engines.ideal import IdealPolicy, IdealRoom
from app.calc.model.architecture import Architecture
from app.calc.model.split import Split
from tests.calc.formulas import computed
from tests.calc.memory.engines.laws import only
from tests.calc.memory.engines.rooms import counts, lengths, pools
from tests.calc.strategies import architectures, catalog_architectures, repeatable
from tests.factories import h200_sxm, interleaved, llama_3_1_8b, shipped_catalog

POLICY = IdealPolicy()
CARD = 81_559 * 2**20
rooms = st.builds(
    IdealRoom,
    architectures() | catalog_architectures(),
    st.sampled_from([Dtype.BF16, Dtype.FP8, Dtype.FP4]),
    st.sampled_from([1, 2, 8]),
)


def test_the_share_is_for_weights_and_cache_alone() -> None:
    rank = only(POLICY, 0.9)
    assert rank.pool.mid == CARD * 0.9 - 16_060_522_496
    assert rank.pool.is_exact
    assert (rank.overheads, rank.held_back_bytes) == ((), 0)
    assert rank.seen_bytes == rank.capacity_bytes == CARD
    assert POLICY.log_lines(rank.rank, rank.pool.mid) == ()


def test_a_token_is_the_smallest_page() -> None:
    room = IdealRoom(llama_3_1_8b(), Dtype.BF16)
    assert room.unit_bytes == 131_072
    assert room.sequence_bytes(1500) == 1500 * 131_072
    assert room.fitting(10 * 1500 * 131_072, 1500) == 10
    assert room.fitting(10 * 1500 * 131_072 - 1, 1500) == 9
    assert room.pool_tokens(1e9, 4096) == 7629
    assert room.longest(1e9, 2) == 3814


def test_context_ranks_share_out_the_tokens() -> None:
    room = IdealRoom(shipped_catalog().architectures["deepseek-v3"], Dtype.BF16, 8)
    assert room.sequence_bytes(4096) == 512 * 70_272
    assert room.sequence_bytes(4097) == 513 * 70_272  # one rank has one more
    assert room.longest(70_272 * 1000, 1) == 8000
    # 8 KV heads on 16 cards are there twice: each card has one head, and of two cards each has half of its tokens.
    card = only(POLICY, architecture=llama_3_1_8b(), accelerator=h200_sxm(), split=Split(16, decode_context=2)).plan
    assert 16 * card.sequence_bytes(8192) == 8192 * 131_072


def test_windows_bound_what_is_kept() -> None:
    room = IdealRoom(interleaved(window=512, full_layers=0), Dtype.BF16)
    assert room.sequence_bytes(10**6) == 5 * 512 * 1024
    assert room.longest(5 * 512 * 1024, 1) is None
    assert room.longest(5 * 512 * 1024 - 1, 1) == 511


@repeatable
@given(rooms, pools, lengths)
def test_the_pool_holds_its_sequences_and_not_one_more(room: IdealRoom, pool: float, tokens: int) -> None:
    one = room.sequence_bytes(tokens)
    local = -(-tokens // room.context_ranks)
    assert one == kv_bytes_per_sequence(room.architecture, local, room.kv_cache)
    if one:
        fitting = room.fitting(pool, tokens)
        assert fitting * one <= pool * (1 + 1e-12)
        assert (fitting + 1) * one > pool * (1 - 1e-12)


@repeatable
@given(rooms, pools, counts)
def test_longest_is_the_inverse(room: IdealRoom, pool: float, sequences: int) -> None:
    longest, share = room.longest(pool, sequences), pool / sequences
    if longest is None:
        assert room.sequence_bytes(10**9) <= share * (1 + 1e-12)
        return
    if longest:
        assert room.sequence_bytes(longest) <= share * (1 + 1e-12)
    assert room.sequence_bytes(longest + 1) > share * (1 - 1e-12)


@repeatable
@given(rooms, pools, pools, lengths, lengths)
def test_more_room_never_holds_less(room: IdealRoom, pool: float, more: float, tokens: int, longer: int) -> None:
    assert room.fitting(pool, tokens) <= room.fitting(pool + more, tokens)
    assert room.fitting(pool, tokens + longer) <= room.fitting(pool, tokens)
    assert room.pool_tokens(pool, tokens) <= room.pool_tokens(pool + more, tokens)


@repeatable
@given(architectures() | catalog_architectures(), pools, lengths, st.sampled_from([1, 2, 4]))
def test_more_context_ranks_never_hold_less(model: Architecture, pool: float, tokens: int, ranks: int) -> None:
    fewer, more = (IdealRoom(model, Dtype.BF16, n) for n in (ranks, 2 * ranks))
    assert fewer.fitting(pool, tokens) <= more.fitting(pool, tokens)
    now, then = fewer.longest(pool, 4), more.longest(pool, 4)
    assert then is None or (now is not None and now <= then)


@repeatable
@given(rooms, pools, lengths, counts)
def test_the_working_computes(room: IdealRoom, pool: float, tokens: int, sequences: int) -> None:
    longest = room.longest(pool, sequences)
    for working, value in (
        (room.explain_fitting(pool, tokens), room.fitting(pool, tokens)),
        (room.explain_tokens(pool, tokens), room.pool_tokens(pool, tokens)),
        *([(room.explain_longest(pool, sequences), longest)] if longest is not None else []),
    ):
        values = {term.symbol: term.value for term in working.terms}
        assert computed(working.formula, values) == pytest.approx(value, rel=1e-9, abs=room.context_ranks)
    assert room.explain_sequence(tokens) is None
