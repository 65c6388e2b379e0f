"""Index-sparse latent attention: stored whole, read in part; some layers reuse a neighbour's index."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.model.layers.latent_attention import LatentAttention, SparseLatentAttention
from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.layers.sparse_attention import Indexer
from app.calc.model.split import SplitError
from tests.calc.strategies import repeatable

DEEPSEEK_V3_2 = SparseLatentAttention(LatentAttention(128, 512, 128, 64, 128, q_rank=1536), 2048, Indexer(64, 128))
GLM_LATENT = LatentAttention(64, 512, 192, 64, 256, q_rank=2048)
GLM_5_2 = SparseLatentAttention(GLM_LATENT, 2048, Indexer(32, 128))
GLM_5_2_REUSING = SparseLatentAttention(GLM_LATENT, 2048)


def stored(attention: SparseLatentAttention, hidden_size: int) -> int:
    return sum(weights.stored for weights in attention.weights(hidden_size))


def test_a_layer_has_the_latent_attention_and_its_indexer() -> None:
    assert stored(DEEPSEEK_V3_2, 7168) == 187_107_328 + 13_959_424
    assert 61 * stored(DEEPSEEK_V3_2, 7168) == 11_413_547_008 + 851_524_864
    assert stored(GLM_5_2, 6144) - stored(GLM_5_2_REUSING, 6144) == 9_371_904
    assert 21 * stored(GLM_5_2, 6144) + 57 * stored(GLM_5_2_REUSING, 6144) == 12_871_732_224 + 196_809_984


def test_queries_of_the_index_come_from_the_hidden_state_where_there_is_no_query_latent() -> None:
    direct = SparseLatentAttention(LatentAttention(16, 512, 128, 64, 128), 64, Indexer(4, 32))
    index = sum(w.stored for w in direct.weights(2048) if w.operator is OperatorName.INDEXER)
    assert index == 2048 * 4 * 32 + 2048 * 32 + 2 * 32 + 2048 * 4


def test_the_cache_has_the_bytes_of_the_published_shape() -> None:
    assert 61 * sum(row.width_per_token for row in DEEPSEEK_V3_2.cache()) * 2 == 85_888
    making, reusing = (sum(row.width_per_token for row in kind.cache()) for kind in (GLM_5_2, GLM_5_2_REUSING))
    assert (making, reusing) == (576 + 128, 576)
    assert (21 * making + 57 * reusing) * 2 == 95_232
    assert 78 * making * 2 == 109_824  # GLM-5, an index in every layer
    assert all(row.span.kept(100_000) == 100_000 for row in DEEPSEEK_V3_2.cache())


layers = st.builds(
    SparseLatentAttention,
    st.builds(LatentAttention, st.integers(1, 3), st.just(8), st.just(5), st.just(3), st.just(4)),
    st.integers(1, 20),
    st.none() | st.just(Indexer(2, 7)),
)


@repeatable
@given(layers, st.integers(1, 60))
def test_a_decode_step_scores_every_position_and_attends_to_the_best(
    attention: SparseLatentAttention, context: int
) -> None:
    index_flops = index_read = flops = read = 0
    for position in range(context):
        if attention.indexer is not None and context > attention.top:  # else there is nothing to choose
            index_flops += attention.indexer.heads * 2 * attention.indexer.dim
            index_read += attention.indexer.dim
        if position < attention.top:
            flops += attention.latent.n_heads * 2 * (2 * attention.latent.kv_rank + attention.latent.rope_dim)
            read += attention.latent.kv_rank + attention.latent.rope_dim
    *index, work = attention.work(Run(1.0, 1.0, context - 1.0, is_decode=True))
    assert [(w.flops, w.cache_elements) for w in index] == [(index_flops, index_read)] * (attention.indexer is not None)
    assert (work.flops, work.cache_elements) == (flops, read)


@repeatable
@given(layers, st.integers(1, 30), st.integers(0, 30))
def test_a_prefill_scores_where_there_is_a_choice_and_attends_to_the_best(
    attention: SparseLatentAttention, new: int, cached: int
) -> None:
    """A query chooses its own tokens first, then the first of the prefix: the choice that repeats most."""
    scored = own = others = 0
    keys, rows, latent = set(), set(), attention.latent
    for position in range(cached, cached + new):
        if position + 1 > attention.top:
            for key in range(position + 1):
                keys.add(key)
                scored += 1
        mine = min(position - cached + 1, attention.top)
        before = list(range(cached))[: attention.top - mine]
        rows.update(before)
        own += mine
        others += len(before)
    *index, up, work = attention.work(Run(1.0, float(new), float(cached), is_decode=False))
    for found in index:
        assert attention.indexer is not None
        assert found.flops == scored * attention.indexer.heads * 2 * attention.indexer.dim
        assert found.cache_elements == len(keys) * attention.indexer.dim
    expanded = latent.n_heads * 2 * (latent.nope_dim + latent.rope_dim + latent.v_dim)
    absorbed = latent.n_heads * 2 * (2 * latent.kv_rank + latent.rope_dim)
    made = len(rows) * latent.n_heads * 2 * latent.kv_rank * (latent.nope_dim + latent.v_dim)
    if made + expanded * others <= absorbed * others:
        assert (up.flops, work.flops) == (made, expanded * (own + others))
    else:
        assert (up.flops, work.flops) == (0, expanded * own + absorbed * others)
    assert work.cache_elements == (new + len(rows)) * latent.row_width


def test_up_to_the_selection_it_is_plain_latent_attention() -> None:
    for cached, new, is_decode in ((2047.0, 1.0, True), (0.0, 2048.0, False), (1000.0, 1048.0, False)):
        run = Run(1.0, new, cached, is_decode=is_decode)
        assert GLM_5_2_REUSING.work(run) == GLM_LATENT.work(run)


def test_far_beyond_it_attention_reads_no_more_while_the_index_does() -> None:
    near, far = (DEEPSEEK_V3_2.work(Run(1.0, 1.0, n, is_decode=True)) for n in (2047.0, 131_071.0))
    assert near[1] == far[1]
    assert far[1].cache_elements == 2048 * 576
    assert near[0].cache_elements == near[0].flops == 0  # 2,048 positions are all read
    assert (far[0].cache_elements, far[0].flops) == (131_072 * 128, 131_072 * 64 * 2 * 128)


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_the_attention_is_divided_and_the_indexer_is_on_every_gpu(ranks: int) -> None:
    part, run = DEEPSEEK_V3_2.split(ranks), Run(1.0, 1.0, 9999.0, is_decode=True)
    assert part.indexer == DEEPSEEK_V3_2.indexer
    assert part.cache() == DEEPSEEK_V3_2.cache()
    assert part.latent == DEEPSEEK_V3_2.latent.split(ranks)
    index, work = DEEPSEEK_V3_2.work(run)
    assert part.work(run)[0] == index
    assert ranks * float(part.work(run)[1].flops) == work.flops
    assert GLM_5_2_REUSING.split(ranks).indexer is None


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(SplitError, match=r"^128 attention heads do not divide among 6 GPUs\.$"):
        DEEPSEEK_V3_2.split(6)


def test_a_layer_says_whether_it_makes_its_selection() -> None:
    assert GLM_5_2.label == "MLA, best 2,048"
    assert GLM_5_2_REUSING.label == "MLA, best 2,048 of a neighbour's index"
    assert GLM_5_2.state() == () == GLM_5_2_REUSING.state()
