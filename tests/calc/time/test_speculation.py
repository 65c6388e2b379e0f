"""Guesses that are checked: tokens of a step, what acceptance that needs, and the floors that no guess beats."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.measure import measure
from app.calc.memory.engines.parts import Draft
from app.calc.model.layers.parts import OperatorName
from app.calc.time.break_even import eagle_head, mtp_drafter
from app.calc.time.operators import decode_operators, prefill_operators
from app.calc.time.speculation import Method, Speculation, acceptance_of, expected_tokens, speculation_of
from tests.calc.strategies import repeatable
from tests.factories import answer_to, deployment, llama_3_1_8b, workload

RATES = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)
GUESSES = st.integers(1, 64)
HEAD = eagle_head(llama_3_1_8b())


def guessing(rate: float, k: int = 3, drafter: Draft | None = HEAD, **changes: object) -> Deployment:
    """The reference case with guesses."""
    speculation = speculation_of(Method.EAGLE, k, rate, None, drafter)
    return deployment(speculation=speculation, **changes)


@pytest.mark.parametrize(
    ("rate", "k", "tokens"),
    [(0.8, 4, 3.3616), (0.0, 4, 1.0), (1.0, 4, 5.0), (0.5, 1, 1.5), (0.5, 3, 1.875), (0.9, 2, 2.71), (1.0, 64, 65.0)],
)
def test_tokens_of_a_step_by_hand(rate: float, k: int, tokens: float) -> None:
    assert expected_tokens(rate, k) == pytest.approx(tokens, rel=1e-12)
    if rate < 1:
        assert tokens == pytest.approx((1 - rate ** (k + 1)) / (1 - rate), rel=1e-12)


def test_no_acceptance_gives_exactly_one_token_and_full_acceptance_exactly_all() -> None:
    for k in (1, 3, 64):
        assert expected_tokens(0.0, k) == 1.0
        assert expected_tokens(1.0, k) == k + 1.0


@repeatable
@given(RATES, RATES, GUESSES)
def test_tokens_of_a_step_grow_with_the_rate_and_with_the_guesses(one: float, other: float, k: int) -> None:
    low, high = sorted((one, other))
    assert 1 <= expected_tokens(low, k) <= expected_tokens(high, k) <= k + 1
    assert expected_tokens(low, k) <= expected_tokens(low, k + 1)


def test_tokens_of_a_step_over_an_array_are_those_of_each() -> None:
    rates = np.linspace(0, 1, 11)
    found = np.asarray(expected_tokens(rates, 5))
    assert found == pytest.approx([expected_tokens(float(rate), 5) for rate in rates], rel=1e-14)


def test_the_acceptance_of_2_8_tokens_of_three_guesses_is_0_7655() -> None:
    rate = acceptance_of(2.8, 3)
    assert rate == pytest.approx(0.7655, abs=5e-5)
    assert 1 + rate + rate**2 + rate**3 == pytest.approx(2.8, rel=1e-12)


@repeatable
@given(st.floats(0, 1), GUESSES)
def test_the_acceptance_of_a_length_gives_that_length_again(share: float, k: int) -> None:
    length = 1 + share * k
    rate = acceptance_of(length, k)
    assert 0 <= rate <= 1
    assert expected_tokens(rate, k) == pytest.approx(length, rel=1e-9)


def test_a_measured_length_beats_a_rate_and_neither_is_no_speculation() -> None:
    assert speculation_of(Method.NGRAM, 3, None, None, None) is None
    measured = speculation_of(Method.NGRAM, 3, 0.1, 2.8, None)
    assert measured is not None
    assert (measured.tokens_per_step, measured.positions) == (2.8, 4)
    assert measured.acceptance_rate == pytest.approx(0.7655, abs=5e-5)


@pytest.mark.parametrize("concurrency", [1, 64, 400])
@pytest.mark.parametrize("drafter", [None, HEAD])
def test_guesses_that_are_never_accepted_never_quicken_a_token(drafter: Draft | None, concurrency: int) -> None:
    crowd = workload(concurrency=concurrency)
    plain, guessed = measure(deployment(workload=crowd)), measure(guessing(0.0, drafter=drafter, workload=crowd))
    assert guessed.serving.tpot_s.ceiling >= plain.serving.tpot_s.ceiling
    assert guessed.serving.ttft_s.ceiling >= plain.serving.ttft_s.ceiling
    assert guessed.serving.output_tokens_per_s.ceiling <= plain.serving.output_tokens_per_s.ceiling


@repeatable
@given(RATES, st.integers(1, 16), st.sampled_from([None, HEAD]), st.sampled_from([1, 30, 1000]))
def test_no_guess_beats_the_reading_of_the_weights_or_the_arithmetic(
    rate: float, k: int, drafter: Draft | None, concurrency: int
) -> None:
    asked = guessing(rate, k, drafter, workload=workload(concurrency=concurrency))
    found, card = measure(asked), asked.accelerator
    tpot = found.serving.tpot_s.ceiling
    head = next(op for op in found.decode.operators if op.name is OperatorName.HEAD)
    assert tpot * card.bandwidth_bytes_per_s * (k + 1) >= 2 * 7_504_924_672  # all but the embedding, in 16 bits
    assert tpot >= found.decode.bytes / card.bandwidth_bytes_per_s / (k + 1) * (1 - 1e-12)
    assert tpot >= found.decode.compute_s / asked.tokens_per_step * (1 - 1e-12)
    assert head.flops == pytest.approx(2 * concurrency * (k + 1) * 4096 * 128_256, rel=1e-12)


def test_a_step_reads_the_weights_once_and_computes_each_position() -> None:
    plain, guessed = (decode_operators(asked, 8.0, 1000.0) for asked in (deployment(), guessing(0.8, 3, None)))
    by_name = {op.name: op for op in plain}
    for op in guessed:
        before = by_name[op.name]
        if op.name in (OperatorName.GATE_UP, OperatorName.DOWN, OperatorName.OUTPUT, OperatorName.HEAD):
            assert op.bytes == before.bytes
            assert op.flops == pytest.approx(4 * scalar(before.flops))
        if op.name is OperatorName.ATTENTION:  # read once together, scored four times
            assert op.bytes == before.bytes
            assert op.flops == pytest.approx(4 * scalar(before.flops))
    written = next(op for op in guessed if op.name is OperatorName.QKV).bytes - by_name[OperatorName.QKV].bytes
    assert written == 8 * 3 * 131_072  # rows of three more positions


def test_the_drafter_runs_once_for_each_guess_and_once_for_the_prompt() -> None:
    asked = guessing(0.8, 3)
    drafted = [op for op in decode_operators(asked, 1.0, 1000.0) if op.is_drafting]
    # Layer 67.1e6 + 176.2e6, features 50.3e6 and head 131.1e6, in 16 bits, three times; and its own cache of one layer.
    weights = 2 * (67_108_864 + 176_160_768 + 50_331_648 + 131_072_000)
    moved = sum(scalar(op.bytes) for op in drafted)
    assert moved == pytest.approx(3 * (weights + 1000 * 4096), rel=1e-3)
    once = [op for op in prefill_operators(asked, 1000.0) if op.is_drafting]
    assert sum(scalar(op.bytes) for op in once) == pytest.approx(weights, rel=0.02)
    assert not [op for op in prefill_operators(guessing(0.8, 3, None), 1000.0) if op.is_drafting]


def test_own_layers_are_split_as_the_others_are_and_read_the_experts_that_their_ranks_hold() -> None:
    model, speculative = {"id": "deepseek-v3", "mtp": True}, {"draft_tokens": 1, "acceptance_length": 1.8}
    asked = answer_to(
        model,
        "h200-sxm",
        workload={"concurrency": 8},
        parallelism={"data": 8, "expert": 8},
        precision={"kv_cache": "fp8"},
        techniques={"speculative": speculative},
    ).evaluation.deployment
    assert asked.speculation is not None
    own, mtp = asked.speculation.drafter, asked.architecture.mtp
    assert own == mtp_drafter(asked.architecture, asked.precision.weights)
    assert mtp is not None
    experts = [op for op in decode_operators(asked, 8.0, 1000.0) if op.is_drafting and op.name is OperatorName.EXPERTS]
    # A token on each of 8 ranks touches 256 × (1 − (1 − 8/256)^8) = 57.4 experts, a rank holds an eighth of those,
    # each 3 × 7,168 × 2,048 bytes in 8 bits with their scales, and the shared one whole or in part.
    one = 3 * 7168 * 2048
    touched = 256 * (1 - (1 - 8 / 256) ** 8) / 8
    moved = sum(scalar(op.bytes) for op in experts)
    assert touched * one <= moved <= (touched + 1) * one * 1.01
    alone = replace(asked, speculation=replace(asked.speculation, method=Method.DRAFT_MODEL))
    whole = [op for op in decode_operators(alone, 8.0, 1000.0) if op.is_drafting and op.name is OperatorName.EXPERTS]
    assert sum(scalar(op.bytes) for op in whole) >= 8 * one  # a model beside it stands whole on each


def test_a_speculation_without_a_drafter_takes_no_time_of_the_gpus() -> None:
    free = Speculation(Method.NGRAM, 2, 0.5, 1.75)
    assert not [op for op in decode_operators(deployment(speculation=free), 1.0, 10.0) if op.is_drafting]
