"""The indexer: its weights in real models by hand, and every position scored one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.layers.indexer import Indexer
from app.calc.layers.parts import OperatorName, Run
from app.calc.layers.span import FULL
from tests.calc.strategies import repeatable

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
@given(st.integers(1, 4), st.integers(1, 16), st.integers(1, 30), st.integers(0, 40))
def test_every_position_is_scored_by_every_head(heads: int, dim: int, new: int, cached: int) -> None:
    indexer, flops, rows = Indexer(heads, dim), 0, set()
    for position in range(cached, cached + new):
        for key in range(position + 1):
            rows.add(key)
            for _ in range(heads):
                flops += 2 * dim
    (prefill,) = indexer.work(Run(1.0, float(new), float(cached), is_decode=False))
    assert (prefill.operator, prefill.flops, prefill.cache_elements) == (OperatorName.INDEXER, flops, len(rows) * dim)
    context = cached + new
    (decode,) = indexer.work(Run(3.0, 1.0, context - 1.0, is_decode=True))
    assert (decode.flops, decode.cache_elements) == (3 * context * heads * 2 * dim, 3 * context * dim)
