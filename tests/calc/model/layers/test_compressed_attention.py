"""Compressed attention: DeepSeek-V4's layers by hand, rows that stand for many positions as fractions of a pair."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.model.layers.compressed_attention import CompressedAttention
from app.calc.model.layers.parts import OperatorName, Run
from app.calc.model.layers.span import FULL, Window
from app.calc.model.split import SplitError
from tests.calc.strategies import repeatable

FLASH = CompressedAttention(64, 512, 1024, 1024, 8, 128)
FLASH_128 = CompressedAttention(64, 512, 1024, 1024, 8, 128, compression=128)
FLASH_4 = CompressedAttention(
    64, 512, 1024, 1024, 8, 128, compression=4, overlap=2, top=512, index_heads=64, index_dim=128
)
PRO_128 = CompressedAttention(128, 512, 1536, 1024, 16, 128, compression=128)
PRO_4 = CompressedAttention(
    128, 512, 1536, 1024, 16, 128, compression=4, overlap=2, top=1024, index_heads=64, index_dim=128
)


def stored(attention: CompressedAttention, hidden_size: int, operator: OperatorName | None = None) -> int:
    return sum(w.stored for w in attention.weights(hidden_size) if operator in (None, w.operator))


def test_a_window_layer_of_v4_flash_part_by_part() -> None:
    query = 4096 * 1024 + 1024 + 1024 * 64 * 512
    row = 4096 * 512 + 512
    output = (64 * 512 // 8) * 8 * 1024 + 8 * 1024 * 4096  # 8 groups of 4,096 to 1,024 each, then to the hidden size
    assert stored(FLASH, 4096) == query + row + output + 64 == 106_956_352
    assert 43 * stored(FLASH, 4096) == 4_599_123_136


def test_compressors_of_v4_flash() -> None:
    four = 2 * 4096 * 1024 + 4 * 1024 + 512  # values and gates over two strides, places, a norm
    many = 2 * 4096 * 512 + 128 * 512 + 512
    assert stored(FLASH_4, 4096, OperatorName.COMPRESSOR) == four == 8_393_216
    assert stored(FLASH_128, 4096, OperatorName.COMPRESSOR) == many == 4_260_352
    assert stored(FLASH, 4096, OperatorName.COMPRESSOR) == 0
    assert 21 * four + 20 * many == 261_464_576


def test_the_indexer_of_v4_flash() -> None:
    index = 2 * 4096 * 256 + 4 * 256 + 128 + 1024 * 64 * 128 + 4096 * 64
    assert stored(FLASH_4, 4096, OperatorName.INDEXER) == index == 10_749_056
    assert 21 * index == 225_730_176
    assert stored(FLASH_128, 4096, OperatorName.INDEXER) == 0


def test_whole_layers_are_the_sum_of_their_parts() -> None:
    assert stored(FLASH_4, 4096) == 106_956_352 + 8_393_216 + 10_749_056
    assert stored(FLASH_128, 4096) == 106_956_352 + 4_260_352


def test_layers_of_v4_pro_sum_to_what_is_published() -> None:
    window = 1536 * (7168 + 65_536) + 1536 + 7168 * 512 + 512 + 128 + 65_536 * 1024 + 16 * 1024 * 7168
    assert 61 * window == 18_293_589_632
    compressors = 30 * (2 * 7168 * 1024 + 4 * 1024 + 512) + 31 * (2 * 7168 * 512 + 128 * 512 + 512)
    assert compressors == 670_128_640
    index = 2 * 7168 * 256 + 4 * 256 + 128 + 1536 * 64 * 128 + 7168 * 64
    assert 30 * index == 501_384_960
    whole = 30 * stored(PRO_4, 7168) + 31 * stored(PRO_128, 7168)
    assert whole == 18_293_589_632 + 670_128_640 + 501_384_960


def bytes_held(layers: list[tuple[int, CompressedAttention]], context: int) -> float:
    rows = [(count, row) for count, kind in layers for row in kind.cache()]
    return sum(count * row.width_per_token * float(row.span.kept(context)) * 2 for count, row in rows)


@pytest.mark.parametrize(
    ("context", "flash", "pro"), [(1024, 12_384, 17_656), (8192, 7568, 10_824), (131_072, 6923, 9909)]
)
def test_the_cache_has_the_bytes_of_the_published_shape(context: int, flash: int, pro: int) -> None:
    """Of Flash at 1,024: (43 × 512 × 128 + 21 × (512 + 128) × 256 + 20 × 512 × 8) × 2 B ÷ 1,024."""
    of_flash = bytes_held([(2, FLASH), (21, FLASH_4), (20, FLASH_128)], context)
    of_pro = bytes_held([(30, PRO_4), (31, PRO_128)], context)
    assert (of_flash / context, of_pro / context) == (flash, pro)


def test_rows_of_window_stride_and_index() -> None:
    assert [(r.label, r.width, r.span, r.compression) for r in FLASH_4.cache()] == [
        ("window", 512, Window(128), 1),
        ("4:1 rows", 512, FULL, 4),
        ("index keys", 128, FULL, 4),
    ]
    assert [row.label for row in FLASH_128.cache()] == ["window", "128:1 rows"]
    assert [row.label for row in FLASH.cache()] == ["window"]
    assert FLASH_4.state() == ()


strides = st.sampled_from([(None, None), (2, None), (4, None), (2, 3), (4, 2), (4, 5)])
layers = st.builds(
    lambda window, stride, heads: CompressedAttention(
        heads, 5, 6, 4, heads, window, stride[0], 2, stride[1], 3 if stride[1] else 0, 7 if stride[1] else 0
    ),
    st.integers(1, 20),
    strides,
    st.integers(1, 3),
)


def one_by_one(attention: CompressedAttention, new: int, cached: int) -> tuple[float, float, float, float]:
    """FLOP and elements read of the attention, then of the index.

    A position whose row it shares with `stride` others is that part of a pair, and of a row. Chosen rows are the
    query's own and the first: the choice that repeats most.
    """
    stride = attention.compression
    exact: set[int] = set()
    shared: set[int] = set()
    scored_rows: set[int] = set()
    pairs = scored = 0.0
    for position in range(cached, cached + new):
        window = range(max(0, position - attention.window + 1), position + 1)
        exact.update(window)
        pairs += len(window)
        if stride is None:
            continue
        seen = set(range(position + 1))
        if attention.top is not None:
            if len(seen) > attention.top * stride:  # else every row is read, and none has to be found
                scored_rows |= seen
                for _ in seen:
                    scored += 1 / stride
            seen = {*range(min(position, attention.top * stride - 1)), position}
        shared |= seen
        for _ in seen:
            pairs += 1 / stride
    rows = len(exact) + (len(shared) / stride if stride else 0)
    flops = pairs * attention.n_heads * (2 * attention.head_dim + 2 * attention.head_dim)
    keys = len(scored_rows) * attention.index_dim / (stride or 1)
    return flops, rows * attention.head_dim, scored * attention.index_heads * 2 * attention.index_dim, keys


@repeatable
@given(layers, st.integers(1, 30), st.integers(0, 40), st.booleans())
def test_work_is_what_is_counted_one_by_one(
    attention: CompressedAttention, new: int, cached: int, is_decode: bool
) -> None:
    new = 1 if is_decode else new
    flops, read, scored, keys = one_by_one(attention, new, cached)
    *index, work = attention.work(Run(2.0, float(new), float(cached), is_decode=is_decode))
    assert work.operator is OperatorName.ATTENTION
    assert (work.flops, work.cache_elements) == (2 * flops, 2 * read)
    assert [(i.operator, i.flops, i.cache_elements) for i in index] == (
        [] if attention.top is None else [(OperatorName.INDEXER, 2 * scored, 2 * keys)]
    )


def test_a_decode_step_of_v4_flash_in_numbers() -> None:
    run = Run(1.0, 1.0, 131_071.0, is_decode=True)
    (window,) = FLASH.work(run)
    assert (window.flops, window.cache_elements) == (4 * 64 * 512 * 128, 512 * 128)
    (many,) = FLASH_128.work(run)  # 131,072 ÷ 128 = 1,024 compressed rows beside the window
    assert (many.flops, many.cache_elements) == (4 * 64 * 512 * (128 + 1024), 512 * (128 + 1024))
    index, four = FLASH_4.work(run)  # 32,768 rows are scored, 512 of them chosen
    assert (index.flops, index.cache_elements) == (2 * 64 * 128 * 32_768, 128 * 32_768)
    assert (four.flops, four.cache_elements) == (4 * 64 * 512 * (128 + 512), 512 * (128 + 512))


def test_rows_that_are_all_read_are_not_scored() -> None:
    """512 rows of 4 positions each are 2,048 positions: only after them there is a choice."""
    (within, _), (beyond, _) = (FLASH_4.work(Run(1.0, 1.0, n, is_decode=True)) for n in (2047.0, 2048.0))
    assert (within.flops, within.cache_elements) == (0, 0)
    assert (beyond.flops, beyond.cache_elements) == (2 * 64 * 128 * 2049 / 4, 128 * 2049 / 4)
    index, _ = FLASH_4.work(Run(1.0, 2048.0, 0.0, is_decode=False))
    assert (index.flops, index.cache_elements) == (0, 0)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_heads_and_output_groups_are_divided_and_the_rest_is_on_every_gpu(ranks: int) -> None:
    part = FLASH_4.split(ranks)
    assert (part.n_heads, part.o_groups) == (64 // ranks, 8 // ranks)
    copied = 4096 * 1024 + 1024 + 4096 * 512 + 512 + 8_393_216 + 10_749_056
    assert ranks * (stored(part, 4096) - copied) == stored(FLASH_4, 4096) - copied
    assert part.cache() == FLASH_4.cache()
    for run in (Run(3.0, 1.0, 9999.0, is_decode=True), Run(1.0, 100.0, 900.0, is_decode=False)):
        index, work = part.work(run)
        assert index == FLASH_4.work(run)[0]
        assert ranks * float(work.flops) == FLASH_4.work(run)[1].flops
        assert work.cache_elements == FLASH_4.work(run)[1].cache_elements


def test_what_does_not_divide_is_refused() -> None:
    with pytest.raises(SplitError, match=r"^64 attention heads do not divide among 3 GPUs\.$"):
        FLASH.split(3)
    with pytest.raises(SplitError, match=r"^8 groups of the output projection do not divide among 16 GPUs\.$"):
        FLASH.split(16)


def test_a_layer_is_called_by_what_stands_for_the_positions_before() -> None:
    assert [kind.label for kind in (FLASH, FLASH_4, FLASH_128)] == [
        "window of 128",
        "4:1 compressed",
        "128:1 compressed",
    ]
