"""Block-sparse attention: an indexer scores everything, attention reads the best blocks, the cache keeps all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.model.layers.grouped_attention import GroupedAttention, QkNorm
from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.layers.sparse_attention import BlockSparseAttention, Indexer
from app.calc.model.split import SplitError
from tests.calc.strategies import repeatable

GROUPED = GroupedAttention(64, 4, 128, qk_norm=QkNorm.PER_HEAD)
MINIMAX_M3 = BlockSparseAttention(GROUPED, 16, 128, Indexer(4, 128, weighs_heads=False))


def stored(attention: BlockSparseAttention | GroupedAttention, hidden_size: int) -> int:
    return sum(weights.stored for weights in attention.weights(hidden_size))


def test_a_layer_has_the_parameters_counted_by_hand() -> None:
    attention = 6144 * 8192 + 2 * 6144 * 512 + 8192 * 6144 + 2 * 128
    index = 6144 * 4 * 128 + 6144 * 128 + 2 * 128
    assert stored(MINIMAX_M3, 6144) == attention + index
    assert 60 * attention == 6_417_300_480
    assert 57 * index == 224_147_712


def test_keys_values_and_index_keys_of_every_position_are_kept() -> None:
    full, keys = MINIMAX_M3.cache()
    assert (full.width, keys.width) == (2 * 4 * 128, 128)
    assert 3 * full.width * 2 + 57 * (full.width + keys.width) * 2 == 137_472
    assert full.span.kept(10**6) == keys.span.kept(10**6) == 10**6
    assert MINIMAX_M3.state() == ()


layers = st.builds(
    BlockSparseAttention,
    st.builds(GroupedAttention, st.just(6), st.sampled_from([1, 2, 6]), st.just(5), st.sampled_from([None, 3])),
    st.integers(1, 4),
    st.integers(1, 6),
    st.just(Indexer(2, 7, weighs_heads=False)),
)


@repeatable
@given(layers, st.integers(1, 30), st.integers(0, 40), st.booleans())
def test_work_is_what_is_counted_one_by_one(
    attention: BlockSparseAttention, new: int, cached: int, is_decode: bool
) -> None:
    """A query takes its own place and the first ones, as many as the blocks hold: the choice that repeats most."""
    new = 1 if is_decode else new
    grouped, most = attention.attention, attention.top_blocks * attention.block
    value_dim = grouped.v_head_dim or grouped.head_dim
    scored = flops = 0
    rows, keys = set(), set()
    for position in range(cached, cached + new):
        if position + 1 > most:  # else there is nothing to choose
            for key in range(position + 1):
                keys.add(key)
                scored += attention.indexer.heads * 2 * attention.indexer.dim
        for key in {*range(min(position, most - 1)), position}:
            rows.add(key)
            for _ in range(grouped.n_heads):
                flops += 2 * grouped.head_dim + 2 * value_dim
    index, work = attention.work(Run(1.0, float(new), float(cached), is_decode=is_decode))
    assert (index.operator, index.flops) == (OperatorName.INDEXER, scored)
    assert index.cache_elements == len(keys) * attention.indexer.dim
    assert (work.operator, work.flops) == (OperatorName.ATTENTION, flops)
    assert work.cache_elements == len(rows) * grouped.n_kv_heads * (grouped.head_dim + value_dim)


def test_up_to_the_chosen_blocks_it_is_plain_attention_and_beyond_it_reads_no_more() -> None:
    at_most, far = (Run(1.0, 1.0, n, is_decode=True) for n in (2047.0, 131_071.0))
    index, *attention = MINIMAX_M3.work(at_most)
    assert (index.flops, index.cache_elements) == (0, 0)
    assert tuple(attention) == GROUPED.work(at_most)
    assert MINIMAX_M3.work(far)[0].cache_elements == 131_072 * 128
    assert MINIMAX_M3.work(far)[1] == MINIMAX_M3.work(at_most)[1]
    assert MINIMAX_M3.work(far)[1].cache_elements == 16 * 128 * 1024


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_the_attention_is_divided_and_the_indexer_is_on_every_gpu(ranks: int) -> None:
    part, run = MINIMAX_M3.split(ranks), Run(1.0, 1.0, 9999.0, is_decode=True)
    assert (part.attention, part.indexer) == (GROUPED.split(ranks), MINIMAX_M3.indexer)
    index, work = part.work(run)
    assert index == MINIMAX_M3.work(run)[0]
    assert ranks * float(work.flops) == MINIMAX_M3.work(run)[1].flops
    assert max(1, 4 // ranks) * float(MINIMAX_M3.work(run)[1].cache_elements) == 4 * float(work.cache_elements)


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(SplitError, match=r"^64 attention heads do not divide among 12 GPUs\.$"):
        MINIMAX_M3.split(12)


def test_a_layer_is_called_by_its_grouping_and_its_selection() -> None:
    assert MINIMAX_M3.label == "GQA, best 16 blocks of 128"
