"""What a pass holds beside weights and cache, against peaks that logs print."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.deployment import stage_architectures
from app.calc.memory.engines.rules import VISION_BYTES, activation_peak, forward_bytes, sampling_bytes
from app.calc.model.architecture import Architecture
from app.calc.model.split import Split
from tests.calc.strategies import architectures, repeatable
from tests.factories import llama_3_1_8b, shipped_catalog

CATALOG = shipped_catalog()
GIB = 2**30


def test_a_long_pass_of_qwen2_5_7b() -> None:
    """vLLM on a V100 profiled 32,768 tokens and printed a peak of 4.35 GiB."""
    model = CATALOG.architectures["qwen2.5-7b"]
    assert forward_bytes(model, 32_768) == 2 * 32_768 * (4 * 3584 + 3 * 18_944)
    assert forward_bytes(model, 32_768) / GIB == pytest.approx(4.35, abs=0.01)


def test_a_batch_of_logits_of_llama_3_1_8b() -> None:
    """vLLM on an H100 sampled 1,024 sequences after 8,192 tokens, sorted, and printed a peak of 4.76 GiB."""
    model = llama_3_1_8b()
    by_hand = 1024 * 128_256 * 38.25 + 1.28 * 8192 * 4096 * 2
    assert sampling_bytes(model, 8192, 1024, 38.25) == pytest.approx(by_hand, rel=1e-12)
    assert activation_peak(model, model, 8192, 1024, 38.25) / GIB == pytest.approx(4.76, abs=0.01)


def test_experts_are_alive_as_many_as_are_chosen() -> None:
    """A layer of Qwen3-30B-A3B: for each of 8 experts its input of 2,048 and an activation of 768."""
    model = CATALOG.architectures["qwen3-30b-a3b"]
    assert forward_bytes(model, 8192) == 2 * 8192 * (4 * 2048 + 8 * (2048 + 768))
    wide = CATALOG.architectures["gpt-oss-120b"]  # gate and up of 2 × 2,880 are wider than the input
    assert forward_bytes(wide, 100) == 2 * 100 * (4 * 2880 + 4 * (2 * 2880 + 2880))


def test_no_more_sequences_are_sampled_than_the_step_has_tokens() -> None:
    model = llama_3_1_8b()
    assert activation_peak(model, model, 100, 1024, 38.25) == sampling_bytes(model, 100, 100, 38.25)


def test_only_the_gpu_with_the_head_samples() -> None:
    model = llama_3_1_8b()
    first, last = stage_architectures(model, Split(pipeline=2))
    assert activation_peak(first, model, 2048, 256, 38.25) == forward_bytes(first, 2048)
    assert activation_peak(last, model, 2048, 256, 38.25) == sampling_bytes(model, 2048, 256, 38.25)


def test_every_tensor_rank_samples_the_whole_vocabulary() -> None:
    model = llama_3_1_8b()
    part = model.split(Split(8))
    assert part.vocab_size == 128_256 // 8
    assert activation_peak(part, model, 8192, 1024, 38.25) == activation_peak(model, model, 8192, 1024, 38.25)


def test_a_vision_encoder_has_a_peak_of_its_own() -> None:
    seeing = CATALOG.architectures["gemma-3-4b"]
    assert activation_peak(seeing, seeing, 16, 1, 1.0) == VISION_BYTES
    blind = replace(seeing, vision_params=0)
    assert activation_peak(blind, blind, 16, 1, 1.0) < VISION_BYTES


@repeatable
@given(architectures(), st.integers(1, 50_000), st.integers(0, 50_000), st.integers(1, 2000), st.integers(0, 2000))
def test_longer_steps_and_more_sequences_never_hold_less(
    model: Architecture, tokens: int, longer: int, sequences: int, more: int
) -> None:
    now = activation_peak(model, model, tokens, sequences)
    assert now <= activation_peak(model, model, tokens + longer, sequences)
    assert now <= activation_peak(model, model, tokens, sequences + more)
    assert forward_bytes(model, tokens) == pytest.approx(tokens * forward_bytes(model, 1), rel=1e-12)
