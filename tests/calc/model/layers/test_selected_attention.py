"""Grouped attention over single positions that an indexer chose."""

from app.calc.model.layers.grouped_attention import GroupedAttention
from app.calc.model.layers.parts import Run
from app.calc.model.layers.sparse_attention import Indexer, SelectedAttention

GROUPED = GroupedAttention(16, 4, 64, query_rank=256)
INDEXER = Indexer(8, 128)
CHOOSING = SelectedAttention(GROUPED, 2048, INDEXER)
FOLLOWING = SelectedAttention(GROUPED, 2048)


def test_the_index_reads_the_factorised_query() -> None:
    assert CHOOSING.weights(1024) == (*GROUPED.weights(1024), *INDEXER.weights(1024, 256))
    assert FOLLOWING.weights(1024) == GROUPED.weights(1024)


def test_all_positions_are_kept_with_their_index_keys() -> None:
    assert [row.width for row in CHOOSING.cache()] == [2 * 4 * 64, 128]
    assert [row.width for row in FOLLOWING.cache()] == [2 * 4 * 64]
    assert CHOOSING.state() == ()


def test_a_step_scores_every_position_and_reads_the_chosen() -> None:
    index, work = CHOOSING.work(Run(1.0, 1.0, 9_999.0, is_decode=True))
    assert index.cache_elements == 10_000 * 128
    assert work.cache_elements == 2048 * 2 * 4 * 64
    assert work.flops == 2 * 2048 * 2 * 16 * 64
    (alone,) = FOLLOWING.work(Run(1.0, 1.0, 9_999.0, is_decode=True))
    assert alone == work


def test_labels_and_split() -> None:
    assert CHOOSING.label == "GQA, best 2,048"
    assert FOLLOWING.label == "GQA, best 2,048 of a neighbour's index"
    assert CHOOSING.split(4) == SelectedAttention(GROUPED.split(4), 2048, INDEXER)
