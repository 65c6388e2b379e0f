"""The vocabulary of the layer kinds: what weights cost, which copies a step touches, what a pass sees, shares."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.dtypes import Dtype
from app.calc.model.layers.parts import (
    CacheRows,
    OperatorName,
    Run,
    State,
    WeightGroup,
    Weights,
    copied_share,
    matrix,
    share,
    vector,
)
from app.calc.model.layers.span import FULL, Chunk, Selection, Span, Window
from app.calc.model.split import SplitError
from tests.calc.strategies import array, at, repeatable

SPANS: list[Span] = [FULL, Window(1), Window(7), Chunk(1), Chunk(7), Selection(1), Selection(7)]
spans = st.sampled_from(SPANS)
chosen_of = st.integers(2, 1024).flatmap(lambda copies: st.tuples(st.integers(1, copies), st.just(copies)))
counts = st.integers(0, 10_000)


def stack(chosen: float, copies: int, params: int = 10) -> Weights:
    return Weights(OperatorName.EXPERTS, WeightGroup.ROUTED_EXPERTS, params, copies, chosen)


def test_a_matrix_costs_two_flops_a_parameter_and_a_vector_what_it_says() -> None:
    square = matrix(OperatorName.QKV, WeightGroup.ATTENTION, 4096 * 4096)
    assert (square.stored, square.active, square.flops) == (16_777_216, 16_777_216, 2 * 16_777_216)
    (silent,) = vector(OperatorName.QKV, WeightGroup.ATTENTION, 4096)
    (gains,) = vector(OperatorName.NORMS, WeightGroup.NORMS, 4096, 4 * 4096)
    assert (silent.stored, silent.flops, silent.is_matrix) == (4096, 0, False)
    assert (gains.stored, gains.flops) == (4096, 16_384)
    assert vector(OperatorName.QKV, WeightGroup.ATTENTION, 0) == ()


def test_a_table_is_stored_whole_and_costs_no_arithmetic() -> None:
    table = Weights(OperatorName.ROUTER, WeightGroup.ROUTER, 129_280 * 6, gathered=6)
    assert (table.stored, table.flops) == (775_680, 0)


def test_of_experts_all_are_stored_and_the_chosen_are_met() -> None:
    experts = stack(8, 128, 3 * 2048 * 768)
    assert experts.stored == 128 * 4_718_592 == 603_979_776
    assert experts.active == 8 * 4_718_592
    assert experts.flops == 2 * 8 * 4_718_592


def expected_touched(chosen: int, copies: int, tokens: int) -> float:
    """Over every way the tokens can choose, how many different copies are among their choices: the plain mean."""
    ways = [set(way) for way in product(range(copies), repeat=chosen) if len(set(way)) == chosen]
    mean, paths = 0.0, list(product(ways, repeat=tokens))
    for path in paths:
        mean += len(set().union(*path)) / len(paths)
    return mean


@pytest.mark.parametrize(
    ("chosen", "copies", "tokens"), [(1, 2, 1), (1, 2, 5), (2, 4, 3), (1, 5, 4), (3, 4, 2), (4, 4, 2), (2, 3, 0)]
)
def test_copies_touched_are_the_mean_over_every_way_to_choose(chosen: int, copies: int, tokens: int) -> None:
    assert stack(chosen, copies).touched(tokens) == pytest.approx(expected_touched(chosen, copies, tokens))


def test_64_tokens_that_choose_8_of_128_touch_nearly_all() -> None:
    touched = stack(8, 128).touched(64)
    assert touched == pytest.approx(128 * (1 - (120 / 128) ** 64))
    assert round(float(touched), 1) == 125.9


@pytest.mark.parametrize(("chosen", "copies"), [(8, 128), (4, 128), (2, 8), (1, 16), (3, 48), (8, 256), (22, 512)])
def test_one_token_touches_exactly_what_it_chooses(chosen: int, copies: int) -> None:
    assert stack(chosen, copies).touched(1) == chosen
    assert stack(chosen, copies).touched(0) == 0


@repeatable
@given(chosen_of, counts, counts)
def test_more_tokens_never_touch_fewer_copies_and_never_more_than_there_are(
    choice: tuple[int, int], tokens: int, more: int
) -> None:
    experts = stack(*choice)
    touched = float(experts.touched(tokens))
    assert 0 <= touched <= experts.copies
    assert experts.touched(tokens + more) >= touched
    assert touched <= tokens * experts.chosen * (1 + 1e-9)
    assert experts.touched(1) == pytest.approx(experts.chosen)


@repeatable
@given(st.integers(1, 1024), st.integers(1, 10_000))
def test_a_token_that_chooses_all_touches_all(copies: int, tokens: int) -> None:
    assert stack(copies, copies).touched(tokens) == (copies if copies > 1 else 1)


def test_one_copy_of_a_group_may_be_passed_by() -> None:
    one = Weights(OperatorName.EXPERTS, WeightGroup.ROUTED_EXPERTS, 100, copies=1, chosen=0.25, is_pooled=True)
    assert (one.is_choice, one.stored, one.active, one.flops) == (True, 100, 25, 50)
    assert [one.touched(tokens) for tokens in (1.0, 2.0)] == [0.25, 1 - 0.75**2]
    assert not matrix(OperatorName.QKV, WeightGroup.ATTENTION, 5).is_choice
    every = Weights(OperatorName.EXPERTS, WeightGroup.ROUTED_EXPERTS, 100, copies=4, chosen=4.0)
    assert (every.is_choice, every.touched(1.0)) == (False, 4)


def test_ranks_that_share_experts_bring_their_tokens_together() -> None:
    run = Run(8.0, 1.0, 99.0, is_decode=True, ranks_together=4.0)
    assert (run.tokens, run.pooled_tokens) == (8, 32)
    assert Run(8.0, 1.0, 99.0, is_decode=True).pooled_tokens == 8


def test_weights_without_copies_are_read_once_whatever_the_step() -> None:
    assert matrix(OperatorName.QKV, WeightGroup.ATTENTION, 5).touched(1000) == 1


@repeatable
@given(chosen_of, st.lists(counts.map(float), min_size=1, max_size=4))
def test_copies_touched_by_arrays_are_those_of_their_elements(choice: tuple[int, int], tokens: list[float]) -> None:
    experts, shape = stack(*choice), (len(tokens), 1)
    table = experts.touched(array(tokens).reshape(-1, 1))
    for i, n in enumerate(tokens):
        assert at(table, shape, (i, 0)) == pytest.approx(float(experts.touched(n)), rel=1e-12)


def test_rows_that_stand_for_many_positions_cost_a_part_each() -> None:
    assert CacheRows("latent", 576, FULL).width_per_token == 576
    assert CacheRows("4:1 rows", 512, FULL, 4).width_per_token == 128
    assert CacheRows("128:1 rows", 512, FULL, 128).width_per_token == 4


def test_a_state_has_a_type_of_its_own() -> None:
    assert State("recurrent state", 524_288, Dtype.FP32).bytes == 2_097_152
    assert State("recurrent state", 524_288, Dtype.BF16).bytes == 1_048_576


def test_a_pass_counts_its_tokens_and_the_context_it_leaves() -> None:
    decode = Run(64.0, 1.0, 4095.0, is_decode=True)
    assert (decode.tokens, decode.context_tokens) == (64, 4096)
    prefill = Run(1.0, 1000.0, 24.0, is_decode=False)
    assert (prefill.tokens, prefill.context_tokens) == (1000, 1024)


@pytest.mark.parametrize("span", SPANS, ids=repr)
def test_a_decode_pass_sees_what_the_difference_of_two_prefills_sees(span: Span) -> None:
    for n in range(30):
        longer, shorter = Run(1.0, n + 1.0, 0.0, is_decode=False), Run(1.0, float(n), 0.0, is_decode=False)
        decode = Run(1.0, 1.0, float(n), is_decode=True)
        assert decode.pairs(span) == float(longer.pairs(span)) - float(shorter.pairs(span))


@pytest.mark.parametrize("span", SPANS, ids=repr)
def test_a_prefill_of_one_token_is_a_decode_step(span: Span) -> None:
    for n in range(30):
        decode, prefill = Run(3.0, 1.0, float(n), is_decode=True), Run(3.0, 1.0, float(n), is_decode=False)
        assert decode.pairs(span) == prefill.pairs(span)
        assert decode.rows_read(span) == prefill.rows_read(span)


@repeatable
@given(spans, st.integers(0, 500), st.integers(0, 500), st.integers(0, 500))
def test_a_prefill_in_two_pieces_sees_as_many_pairs_as_in_one(span: Span, cached: int, first: int, then: int) -> None:
    whole = Run(1.0, float(first + then), float(cached), is_decode=False).pairs(span)
    one = Run(1.0, float(first), float(cached), is_decode=False).pairs(span)
    other = Run(1.0, float(then), float(cached + first), is_decode=False).pairs(span)
    assert float(one) + float(other) == whole


@repeatable
@given(spans, st.integers(1, 60), st.integers(0, 60))
def test_a_prefill_reads_every_row_it_makes_and_what_it_reaches_back_to(span: Span, new: int, cached: int) -> None:
    assert Run(2.0, float(new), float(cached), is_decode=False).rows_read(span) == 2 * (new + float(span.reach(cached)))


def test_a_share_divides_or_says_what_does_not() -> None:
    assert [share(64, ranks, "attention heads") for ranks in (1, 2, 8, 64)] == [64, 32, 8, 1]
    with pytest.raises(SplitError, match=r"^71 attention heads do not divide among 8 GPUs\.$"):
        share(71, 8, "attention heads")
    with pytest.raises(SplitError, match=r"^4 attention heads do not divide among 8 GPUs\.$"):
        share(4, 8, "attention heads")
    with pytest.raises(SplitError, match=r"^10,000 channels of Mamba do not divide among 1,024 GPUs\.$"):
        share(10_000, 1024, "channels of Mamba")


def test_what_is_fewer_than_the_gpus_is_copied_where_it_is_even() -> None:
    assert [copied_share(8, ranks, "KV heads") for ranks in (1, 2, 4, 8, 16, 64)] == [8, 4, 2, 1, 1, 1]
    assert copied_share(1, 1024, "KV heads") == 1
    with pytest.raises(SplitError, match=r"^6 KV heads do not divide among 4 GPUs\.$"):
        copied_share(6, 4, "KV heads")
    with pytest.raises(SplitError, match=r"^3 KV heads cannot be copied evenly to 8 GPUs\.$"):
        copied_share(3, 8, "KV heads")
