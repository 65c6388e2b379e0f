"""A prompt in steps beside others' tokens: who waits for how long, never less than the floors."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.deployment import Deployment
from app.calc.measure import measure
from app.calc.time.chunked_prefill import chunked
from app.scenario.resolve import resolve
from tests.calc.strategies import repeatable
from tests.factories import deployment, scenario, shipped_catalog, workload

SLACK = 1 + 1e-9
BUDGETS = st.none() | st.integers(1, 40_000)


def asked(model: str = "llama-3.1-8b", hardware: str = "h100-sxm-80gb", **sections: Any) -> Deployment:
    return resolve(scenario(model, hardware, **sections), shipped_catalog()).deployment


CASES = (
    asked(workload={"prompt_tokens": 8000, "concurrency": 16}),
    asked("deepseek-v3", "h200-sxm", parallelism={"tensor": 8}, workload={"prompt_tokens": 30_000, "concurrency": 64}),
    asked("qwen3.5-35b-a3b", "b200-sxm", workload={"prompt_tokens": 2000, "concurrency": 300}),
    asked(
        "llama-3.1-70b",
        "h200-sxm",
        parallelism={"tensor": 2, "pipeline": 2},
        workload={"prompt_tokens": 5000, "prefix_hit_rate": 0.9},
    ),
    asked(workload={"prompt_tokens": 1, "concurrency": 1}),
    asked(workload={"prompt_tokens": 9000, "prefix_hit_rate": 1, "concurrency": 5000}),
    deployment(workload=workload(prompt_tokens=3000)),  # nothing calibrated
)


def test_chunks_by_hand() -> None:
    here = deployment(workload=workload(prompt_tokens=4096, concurrency=64))
    found = measure(here)
    cut, whole = chunked(here, found, 1088), chunked(here, found, None)
    # 64 of the 1,088 decode, 1,024 are left: four chunks; the weights four times, of 4,096 rows half of 3 × 4,096.
    assert (cut.budget_tokens, cut.chunk_tokens, cut.chunks) == (1088, 1024, 4)
    assert cut.read_bytes == pytest.approx(4 * 16_060_522_496 + 131_072 * 4096 * 1.5)
    part = found.prefill.compute_s / 4
    assert cut.pause_ceiling_s == pytest.approx(max(found.decode.ceiling_s, part))
    assert cut.first_ceiling_s == pytest.approx(
        max(found.prefill.ceiling_s, 4 * found.decode.ceiling_s, found.prefill.compute_s)
    )
    assert (cut.pause_s, cut.first_s) == (None, None)
    assert (cut.best_pause_s, cut.best_first_s) == (cut.pause_ceiling_s, cut.first_ceiling_s)
    assert (whole.budget_tokens, whole.chunk_tokens, whole.chunks) == (4096, 4096, 1)
    assert whole.pause_ceiling_s == whole.first_ceiling_s == found.prefill.ceiling_s
    assert whole.read_bytes == 16_060_522_496


def test_a_budget_that_all_who_decode_use_up_leaves_one_token_a_step() -> None:
    here = deployment(workload=workload(prompt_tokens=100, concurrency=64))
    assert chunked(here, measure(here), 10).chunks == 100


def test_one_chunk_spares_those_who_decode_most_of_a_long_prompt() -> None:
    here, found = CASES[0], measure(CASES[0])
    cut, whole = chunked(here, found, 512), chunked(here, found, None)
    assert cut.best_pause_s < whole.best_pause_s / 4
    assert cut.best_first_s >= whole.best_first_s


@repeatable
@given(st.sampled_from(CASES), BUDGETS)
def test_no_pause_and_no_first_token_is_below_its_floor(here: Deployment, budget: int | None) -> None:
    found = measure(here)
    cut = chunked(here, found, budget)
    new = here.workload.prompt_tokens - here.workload.cached_prompt_tokens
    stages = here.split.pipeline
    assert cut.chunks * cut.chunk_tokens >= new > (cut.chunks - 1) * cut.chunk_tokens
    assert cut.pause_ceiling_s >= found.decode.ceiling_s
    assert cut.first_ceiling_s * SLACK >= found.prefill.ceiling_s / stages
    assert cut.first_ceiling_s * SLACK >= found.prefill.compute_s / stages
    assert cut.best_pause_s >= cut.pause_ceiling_s
    assert cut.best_first_s >= cut.first_ceiling_s
    # The prompt's arithmetic passes in the pauses of those who decode, or in one.
    assert cut.chunks * cut.pause_ceiling_s * SLACK >= found.prefill.compute_s / stages
    assert cut.read_bytes >= found.memory.per_gpu.weights_bytes


@repeatable
@given(st.sampled_from(CASES), st.integers(1, 20_000), st.integers(1, 20_000))
def test_a_larger_budget_never_needs_more_chunks_and_never_shortens_a_pause(
    here: Deployment, budget: int, more: int
) -> None:
    found = measure(here)
    small, large = chunked(here, found, budget), chunked(here, found, budget + more)
    assert large.chunks <= small.chunks
    assert large.pause_ceiling_s >= small.pause_ceiling_s
    assert large.first_ceiling_s <= small.first_ceiling_s
    assert large.read_bytes <= small.read_bytes


def test_prefilling_whole_is_what_an_endless_step_is() -> None:
    """The switch changes how prompts are cut and nothing at the ceiling."""
    here = CASES[1]
    whole = replace(here, engine=replace(here.engine, chunks_prefill=False))
    endless = replace(here, engine=replace(here.engine, step_tokens=30_000))
    before, found, reference = measure(here), measure(whole), measure(endless)
    assert found.serving.ttft_s.ceiling == before.serving.ttft_s.ceiling
    assert found.prefill_s.mid == reference.prefill_s.mid
    assert found.prefill_s.mid < before.prefill_s.mid  # type: ignore[operator]
