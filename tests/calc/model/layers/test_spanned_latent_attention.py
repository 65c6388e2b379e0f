"""A latent over a window or a chunk: the latent's weights and work, the span's rows."""

from app.calc.model.layers.latent_attention import LatentAttention, SpannedLatentAttention
from app.calc.model.layers.parts import Run
from app.calc.model.layers.span import Chunk, Window

LATENT = LatentAttention(16, 512, 128, 64, 128)
WINDOWED = SpannedLatentAttention(LATENT, Window(512))


def test_weights_are_those_of_the_latent_and_rows_end_with_the_span() -> None:
    assert WINDOWED.weights(2048) == LATENT.weights(2048)
    (row,) = WINDOWED.cache()
    assert (row.width, row.span.kept(10_000.0)) == (576, 512)
    assert WINDOWED.state() == ()


def test_a_step_reads_the_window_once_for_all_heads() -> None:
    (work,) = WINDOWED.work(Run(1.0, 1.0, 9_999.0, is_decode=True))
    assert work.cache_elements == 512 * 576
    assert work.flops == 2 * 16 * (576 + 512) * 512


def test_within_the_span_it_works_as_the_latent_does() -> None:
    run = Run(2.0, 1.0, 400.0, is_decode=True)
    assert WINDOWED.work(run) == LATENT.work(run)


def test_labels_and_split() -> None:
    chunked = SpannedLatentAttention(LATENT, Chunk(8192))
    assert (WINDOWED.label, chunked.label) == ("MLA, window of 512", "MLA, chunks of 8,192")
    assert WINDOWED.split(4) == SpannedLatentAttention(LATENT.split(4), Window(512))
    assert WINDOWED.split(4).cache() == WINDOWED.cache()
