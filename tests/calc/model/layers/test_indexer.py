"""The indexer: its weights in real models by hand, and positions scored one by one where there is a choice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.layers.span import FULL
from app.calc.model.layers.sparse_attention import Indexer
from tests.calc.strategies import array, at, repeatable

DEEPSEEK_V3_2, GLM_5, MINIMAX_M3 = Indexer(64, 128), Indexer(32, 128), Indexer(4, 128, weighs_heads=False)


@pytest.mark.parametrize(
    ("indexer", "hidden_size", "query_input", "by_hand", "layers", "published"),
    [
        (DEEPSEEK_V3_2, 7168, 1536, 1536 * 64 * 128 + 7168 * 128 + 2 * 128 + 7168 * 64, 61, 851_524_864),
        (GLM_5, 6144, 2048, 2048 * 32 * 128 + 6144 * 128 + 2 * 128 + 6144 * 32, 78, 731_008_512),
        (GLM_5, 6144, 2048, 9_371_904, 21, 196_809_984),  # GLM-5.2: in 21 of 78 layers
        (MINIMAX_M3, 6144, 6144, 6144 * 4 * 128 + 6144 * 128 + 2 * 128, 57, 224_147_712),
    ],
)
def test_an_indexer_has_the_parameters_counted_by_hand(
    indexer: Indexer, hidden_size: int, query_input: int, by_hand: int, layers: int, published: int
) -> None:
    stored = sum(weights.stored for weights in indexer.weights(hidden_size, query_input))
    assert stored == by_hand
    assert layers * stored == published


def test_the_worked_number_of_deepseek_v3_2() -> None:
    assert sum(w.stored for w in DEEPSEEK_V3_2.weights(7168, 1536)) == 13_959_424
    assert {w.operator for w in DEEPSEEK_V3_2.weights(7168, 1536)} == {OperatorName.INDEXER}


def test_an_index_key_of_every_position_is_stored() -> None:
    (row,) = DEEPSEEK_V3_2.cache()
    assert (row.width_per_token, row.span) == (128, FULL)
    # DeepSeek-V3.2: 61 layers of a latent of 576 and a key of 128, 2 B each.
    assert 61 * (576 + row.width) * 2 == 85_888


@repeatable
@given(st.integers(1, 4), st.integers(1, 16), st.integers(1, 40), st.integers(1, 30), st.integers(0, 40))
def test_positions_are_scored_where_more_are_there_than_may_be_seen(
    heads: int, dim: int, top: int, new: int, cached: int
) -> None:
    """A query that may see all before it needs no score; one that may not scores everything by every head."""
    indexer, flops, rows = Indexer(heads, dim), 0, set()
    for position in range(cached, cached + new):
        if position + 1 > top:
            for key in range(position + 1):
                rows.add(key)
                for _ in range(heads):
                    flops += 2 * dim
    (prefill,) = indexer.work(Run(1.0, float(new), float(cached), is_decode=False), top)
    assert (prefill.operator, prefill.flops, prefill.cache_elements) == (OperatorName.INDEXER, flops, len(rows) * dim)
    context = cached + new
    scored = context if context > top else 0
    (decode,) = indexer.work(Run(3.0, 1.0, context - 1.0, is_decode=True), top)
    assert (decode.flops, decode.cache_elements) == (3 * scored * heads * 2 * dim, 3 * scored * dim)


def test_up_to_the_selection_there_is_nothing_to_score() -> None:
    (within,), (beyond,) = (DEEPSEEK_V3_2.work(Run(1.0, 1.0, n, is_decode=True), 2048) for n in (2047.0, 2048.0))
    assert (within.flops, within.cache_elements) == (0, 0)
    assert (beyond.flops, beyond.cache_elements) == (2 * 64 * 128 * 2049, 128 * 2049)
    (whole,) = DEEPSEEK_V3_2.work(Run(1.0, 2048.0, 0.0, is_decode=False), 2048)
    (one_more,) = DEEPSEEK_V3_2.work(Run(1.0, 2049.0, 0.0, is_decode=False), 2048)
    assert (whole.flops, whole.cache_elements) == (0, 0)
    assert (one_more.flops, one_more.cache_elements) == (beyond.flops, beyond.cache_elements)


def test_arrays_are_their_elements() -> None:
    lengths, cached = [1.0, 2048.0, 2049.0, 9000.0], [0.0, 5.0, 2047.0, 2048.0, 100_000.0]
    shape = (len(lengths), len(cached))
    (prefill,) = DEEPSEEK_V3_2.work(Run(1.0, array(lengths)[:, None], array(cached), is_decode=False), 2048)
    (decode,) = DEEPSEEK_V3_2.work(Run(array(lengths)[:, None], 1.0, array(cached), is_decode=True), 2048)
    for i, first in enumerate(lengths):
        for j, before in enumerate(cached):
            for table, run in (
                (prefill, Run(1.0, first, before, is_decode=False)),
                (decode, Run(first, 1.0, before, is_decode=True)),
            ):
                (one,) = DEEPSEEK_V3_2.work(run, 2048)
                assert at(table.flops, shape, (i, j)) == one.flops
                assert at(table.cache_elements, shape, (i, j)) == one.cache_elements
