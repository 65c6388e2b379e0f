"""llama.cpp's slots: the cache of each is allocated up front, at the full context, in cells of 256."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.deployment import Engine
from app.calc.dtypes import Dtype
from app.calc.measure import measure
from app.calc.memory.cache import CachedLayers, CachedRows, CachedState
from app.calc.memory.engines.llama_cpp import LlamaCppPolicy, SlotRoom
from app.calc.memory.engines.parts import MOST_CONCURRENT, Given
from tests.calc.formulas import computed
from tests.calc.memory.engines.laws import GIB, laws, only
from tests.calc.memory.engines.rooms import (
    check_longest_and_fitting,
    check_monotone,
    check_whole,
    counts,
    layers,
    lengths,
    pools,
)
from tests.calc.strategies import repeatable
from tests.factories import BF16, deployment, h200_sxm, interleaved, shipped_catalog

CATALOG = shipped_catalog()
POLICY = LlamaCppPolicy("llama.cpp", laws())
CARD = 81_559 * 2**20
WEIGHTS = 16_060_522_496
FULL = CachedRows("full", 10, 100.0, None, False, (1,))
WINDOW = CachedRows("window", 50, 100.0, 1024, False, (1,))
rooms = st.builds(SlotRoom, layers, st.sampled_from([1, 512, 2048]))


def test_what_is_left_of_the_card_is_for_slots() -> None:
    rank = only(POLICY, 1.0)
    assert rank.pool.mid == pytest.approx(CARD - WEIGHTS - 2.5 * GIB, rel=1e-12)  # nothing is captured
    assert POLICY.pool_formula == "max(0, M × u − W − A − N)"


def test_an_element_of_a_quantized_cache_has_its_share_of_a_scale() -> None:
    """q8_0 keeps 32 elements in 34 B, q4_0 in 18 B. Source: ggml's block formats."""
    sizes = {
        dtype: only(POLICY, precision=replace(BF16, kv_cache=dtype)).plan.unit_bytes / (256 * 65_536)
        for dtype in (Dtype.BF16, Dtype.FP16, Dtype.INT8, Dtype.INT4)
    }
    assert sizes == {Dtype.BF16: 2, Dtype.FP16: 2, Dtype.INT8: 34 / 32, Dtype.INT4: 18 / 32}


def test_a_latent_cache_in_8_bits_by_the_log() -> None:
    """ik_llama.cpp#259: 32,768 tokens of DeepSeek-V3 in q8_0 take 1166.62 MiB: 61 × 576 × 34 ÷ 32 B a token."""
    rank = only(
        POLICY,
        architecture=CATALOG.architectures["deepseek-v3"],
        precision=replace(BF16, kv_cache=Dtype.INT8),
        accelerator=h200_sxm(),
        settings={"max_model_len": 32_768, "max_num_seqs": 1},
    )
    assert rank.plan.sequence_bytes(32_768) / 2**20 == pytest.approx(1166.62, abs=0.01)
    found = {line.id: line.text for line in POLICY.log_lines(rank.rank, rank.pool.mid)}
    assert found == {"context": "32768", "pool": "1166.62 MiB"}


def test_the_context_that_was_set_is_allocated_for_every_slot() -> None:
    """Eight slots of 131,072 tokens at 128 KiB are 128 GiB, whatever the requests are."""
    asked: dict[str, Any] = {"max_model_len": 131_072, "max_num_seqs": 8}
    assert only(POLICY, settings=asked).reserved_bytes == 8 * 131_072 * 131_072
    held = measure(deployment(engine=Engine("tested", 1.0, POLICY, **asked))).memory
    assert held.max_concurrency == 0  # it does not start
    few = asked | {"max_num_seqs": 3}
    held = measure(deployment(engine=Engine("tested", 1.0, POLICY, **few))).memory
    assert held.max_concurrency == 3
    assert only(POLICY, settings={"max_num_seqs": 8}).reserved_bytes == 0  # the model's own limit was not chosen


def test_contexts_are_rounded_up_to_cells_of_256() -> None:
    room = SlotRoom(CachedLayers((FULL,), ()), 512)
    assert [room.sequence_bytes(tokens) / 1000 for tokens in (1, 256, 257, 4096)] == [256, 256, 512, 4096]
    assert room.unit_bytes == 256_000
    assert room.fitting(1_000_000, 257) == 1
    assert room.pool_tokens(3 * 512_000, 257) == 6 * 256  # one slot of six cells
    assert room.longest(1_000_000, 1) == 3 * 256


def test_a_window_layer_keeps_its_window_and_one_micro_batch() -> None:
    room = SlotRoom(CachedLayers((FULL, WINDOW), ()), 512)
    # 1,024 + 512 tokens are six cells of 256
    assert room.sequence_bytes(131_072) == 100 * (10 * 131_072 + 50 * 1536)
    assert room.sequence_bytes(1000) == 100 * (10 * 1024 + 50 * 1024)
    whole = SlotRoom(CachedLayers((FULL, WINDOW), ()).full_length, 512)
    assert whole.sequence_bytes(131_072) == 100 * 60 * 131_072  # builds without it: the 5-fold and more of reports


def test_states_are_kept_once_a_slot() -> None:
    room = SlotRoom(CachedLayers((FULL,), (CachedState("state", 30, 1000.0),)), 512)
    assert room.sequence_bytes(1) == 30_000 + 256_000
    assert room.fitting(286_000 * 4, 1) == 4
    alone = SlotRoom(CachedLayers((), (CachedState("state", 30, 1000.0),)), 512)
    assert (alone.longest(30_000, 1), alone.longest(29_999, 1)) == (None, 0)
    nothing = SlotRoom(CachedLayers((), ()), 512)
    assert (nothing.fitting(0, 1), nothing.longest(0, 1)) == (MOST_CONCURRENT, None)


def test_the_log_has_the_cache_of_the_slots_that_were_asked_for() -> None:
    settings = {"max_model_len": 4096, "max_num_seqs": 4, "given": Given(kv_pool=GIB)}
    rank = only(POLICY, architecture=interleaved(full_layers=6, windowed_layers=0), settings=settings)
    found = {line.id: line for line in POLICY.log_lines(rank.rank, rank.pool.mid)}
    assert found["context"].value == 16_384
    assert found["pool"].value == 4 * 4096 * 6 * 1024


@repeatable
@given(rooms, pools, counts)
def test_longest_and_fitting_agree(found: SlotRoom, pool: float, sequences: int) -> None:
    check_longest_and_fitting(found, pool, sequences)


@repeatable
@given(rooms, pools, pools, lengths, lengths)
def test_more_room_never_holds_less(found: SlotRoom, pool: float, more: float, tokens: int, longer: int) -> None:
    check_monotone(found, pool, more, tokens, longer)


@repeatable
@given(rooms, pools, lengths)
def test_the_pool_holds_its_slots_and_not_one_more(found: SlotRoom, pool: float, tokens: int) -> None:
    if found.sequence_bytes(tokens):
        check_whole(found, pool, tokens)


@repeatable
@given(rooms, pools, lengths, counts)
def test_the_working_computes(found: SlotRoom, pool: float, tokens: int, sequences: int) -> None:
    longest, sequence = found.longest(pool, sequences), found.explain_sequence(tokens)
    assert sequence is not None
    for working, value in (
        (found.explain_fitting(pool, tokens), found.fitting(pool, tokens)),
        (found.explain_tokens(pool, tokens), found.pool_tokens(pool, tokens)),
        (sequence, found.sequence_bytes(tokens)),
        *([(found.explain_longest(pool, sequences), longest)] if longest is not None else []),
    ):
        values = {term.symbol: term.value for term in working.terms}
        assert computed(working.formula, values) == pytest.approx(value, rel=1e-12)
