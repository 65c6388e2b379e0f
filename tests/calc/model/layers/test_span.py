"""Spans against positions that are listed one by one: what a query sees, what a layer keeps, what a prefill reads."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.model.layers.span import FULL, Chunk, Full, Selection, Span, Window
from tests.calc.strategies import array, at, repeatable

lengths = st.integers(1, 40)
spans: st.SearchStrategy[Span] = st.one_of(
    st.just(FULL), st.builds(Window, lengths), st.builds(Chunk, lengths), st.builds(Selection, lengths)
)
tokens = st.integers(0, 130)
long_contexts = st.integers(0, 10**8)


def seen(span: Span, position: int) -> set[int]:
    """The positions, counted from 0, that the query at `position` attends to.

    A selection is free to choose: here it takes the query itself and the first positions, the same for every query.
    """
    match span:
        case Window(length):
            return set(range(max(0, position - length + 1), position + 1))
        case Chunk(length):
            return set(range(position // length * length, position + 1))
        case Selection(top):
            return {*range(min(position, top - 1)), position}
        case _:
            return set(range(position + 1))


@repeatable
@given(spans, st.integers(1, 130))
def test_the_newest_token_sees_the_positions_listed(span: Span, context: int) -> None:
    assert span.visible(context) == len(seen(span, context - 1))


@repeatable
@given(spans, tokens)
def test_the_pairs_of_a_causal_pass_are_those_counted_one_by_one(span: Span, n: int) -> None:
    assert span.pairs(n) == sum(len(seen(span, position)) for position in range(n))


@repeatable
@given(spans, tokens, st.integers(1, 60))
def test_a_prefill_reaches_back_to_the_cached_positions_that_its_tokens_see(span: Span, cached: int, new: int) -> None:
    back = {key for position in range(cached, cached + new) for key in seen(span, position) if key < cached}
    assert span.reach(cached) == len(back)


@repeatable
@given(spans, tokens)
def test_what_a_later_token_may_see_is_kept(span: Span, context: int) -> None:
    """A window keeps the place of its newest token too, and a chunk has room for all it will ever hold."""
    later = {key for position in range(context, context + 50) for key in seen(span, position) if key < context}
    kept = span.kept(context)
    if isinstance(span, Window | Chunk):
        assert kept == min(context, span.tokens)
        assert len(later) <= kept
    else:
        assert kept == context


@repeatable
@given(spans, long_contexts)
def test_one_more_token_adds_the_pairs_that_it_sees(span: Span, n: int) -> None:
    assert float(span.pairs(n + 1)) - float(span.pairs(n)) == pytest.approx(float(span.visible(n + 1)), abs=2)
    if n < 10**6:  # below 2^53 pairs the difference is exact
        assert float(span.pairs(n + 1)) - float(span.pairs(n)) == span.visible(n + 1)


@repeatable
@given(spans, long_contexts)
def test_a_token_sees_what_is_reached_back_to_and_itself(span: Span, cached: int) -> None:
    assert span.visible(cached + 1) == float(span.reach(cached)) + 1


@repeatable
@given(spans, long_contexts, st.integers(0, 10**6))
def test_a_longer_context_never_keeps_less_nor_has_fewer_pairs(span: Span, n: int, more: int) -> None:
    assert span.kept(n + more) >= float(span.kept(n))
    assert span.pairs(n + more) >= float(span.pairs(n))


@repeatable
@given(spans.filter(lambda span: not isinstance(span, Chunk)), long_contexts, st.integers(0, 10**6))
def test_a_longer_context_never_shows_less_outside_chunks(span: Span, n: int, more: int) -> None:
    assert span.visible(n + more) >= float(span.visible(n))
    assert span.reach(n + more) >= float(span.reach(n))


def test_a_chunk_that_starts_anew_shows_less_to_a_later_token() -> None:
    """Why more context is not always more work: the first token of a chunk sees itself alone."""
    chunk = Chunk(8192)
    assert [chunk.visible(n) for n in (1, 8191, 8192, 8193, 16_384, 16_385)] == [1, 8191, 8192, 1, 8192, 1]
    assert [chunk.reach(n) for n in (0, 1, 8191, 8192, 8193)] == [0, 1, 8191, 0, 1]


def test_a_half_token_past_a_boundary_is_the_first_of_its_chunk() -> None:
    """A step halfway through an answer has a context that need not be whole."""
    assert [Chunk(8192).visible(n) for n in (0.5, 8191.5, 8192.5, 8193.5, 16_384.5)] == [0.5, 8191.5, 1.0, 1.5, 1.0]
    assert Chunk(8192).visible(array([8192.0, 8192.5])).tolist() == [8192.0, 1.0]  # type: ignore[union-attr]


@pytest.mark.parametrize("length", [1, 128, 3000, 8192])
@pytest.mark.parametrize("chunks", [1, 2048, 10_000, 12_207])
def test_the_last_place_of_a_chunk_belongs_to_it_however_far_out(length: int, chunks: int) -> None:
    """At 33 million tokens a nudge of 1e-9 is lost in rounding; the whole number is not."""
    assert Chunk(length).visible(length * chunks) == length
    assert Chunk(length).visible(length * chunks + 1) == 1


@repeatable
@given(spans, st.lists(long_contexts.map(float), min_size=1, max_size=4))
def test_spans_of_arrays_are_those_of_their_elements(span: Span, contexts: list[float]) -> None:
    shape, table = (1, len(contexts)), array(contexts).reshape(1, -1)
    for method in (span.kept, span.visible, span.pairs, span.reach):
        for i, context in enumerate(contexts):
            assert at(method(table), shape, (0, i)) == method(context)


@repeatable
@given(st.integers(1, 5000), st.integers(1, 20_000))
def test_a_span_keeps_no_more_once_it_is_full(length: int, beyond: int) -> None:
    for span in (Window(length), Chunk(length)):
        assert span.saturates_at == length
        assert span.kept(length) == length == span.kept(length + beyond)
        assert length == 1 or span.kept(length - 1) == length - 1
    for endless in (FULL, Selection(length)):
        assert endless.saturates_at == inf
        assert endless.kept(length + beyond) == length + beyond


@pytest.mark.parametrize(
    ("span", "n", "pairs"),
    [
        (FULL, 0, 0),
        (FULL, 1, 1),
        (FULL, 1000, 1000 * 1001 / 2),  # 500,500
        (Window(128), 1000, 128 * 129 / 2 + 872 * 128),  # 8,256 + 111,616 = 119,872
        (Window(128), 128, 8256),
        (Window(1), 10**8, 10**8),
        (Selection(2048), 1000, 500_500),
        (Selection(2048), 10_000, 2048 * 2049 / 2 + 7952 * 2048),
        (Chunk(400), 1000, 2 * 400 * 401 / 2 + 200 * 201 / 2),  # 160,400 + 20,100
        (Chunk(8192), 8192, 8192 * 8193 / 2),
        (FULL, 10**8, 5_000_000_050_000_000),
    ],
)
def test_pairs_of_known_sizes(span: Span, n: int, pairs: float) -> None:
    assert span.pairs(n) == pairs


def test_the_shared_full_span_is_a_full_span() -> None:
    assert Full() == FULL
