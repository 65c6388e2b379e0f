"""TensorRT-LLM's fraction of what is free, against pools and tokens that its logs print."""

from dataclasses import replace

import pytest

from app.calc.dtypes import Dtype
from app.calc.memory.engines.paged_pool import BlockRoom
from app.calc.memory.engines.parts import Given
from app.calc.memory.engines.tensorrt_llm import TensorRtLlmPolicy
from tests.calc.memory.engines.laws import GIB, fixed, laws, only
from tests.factories import BF16, deployment, interleaved, shipped_catalog

CATALOG = shipped_catalog()
POLICY = TensorRtLlmPolicy("TensorRT-LLM", laws())
CARD = 81_559 * 2**20
WEIGHTS = 16_060_522_496


def test_the_fraction_is_of_what_is_left() -> None:
    rank = only(POLICY, 0.9)
    assert rank.budget_bytes == CARD  # the share is not of the card
    assert rank.pool.mid == pytest.approx(0.9 * (CARD - WEIGHTS - 2.5 * GIB), rel=1e-12)
    assert rank.held_back_bytes == pytest.approx(CARD - WEIGHTS - rank.pool.mid, rel=1e-12)
    assert POLICY.pool_formula == "max(0, M − N − A − W) × u"


def test_an_8b_model_on_an_rtx_5090_class_card() -> None:
    """A log: 17.83 GiB available × 0.9 = 16.05 GiB, 8,219 blocks of 32 tokens of 65,536 B: 263,008 tokens."""
    given = Given(total_memory=31.84 * GIB, weights=(31.84 - 17.83) * GIB, activation=0.0, non_framework=0.0)
    rank = only(
        POLICY,
        0.9,
        settings={"given": given, "block_tokens": 32},
        accelerator=CATALOG.devices["rtx-5090"],
        precision=replace(BF16, kv_cache=Dtype.FP8),
    )
    assert rank.pool.mid / GIB == pytest.approx(16.05, abs=0.005)
    found = {line.id: line.value for line in POLICY.log_lines(rank.rank, rank.pool.mid)}
    assert found["blocks"] == int(17.83 * 0.9 * GIB / (32 * 65_536)) == 8216
    assert found["blocks"] == pytest.approx(8219, rel=5e-4)  # 17.83 is rounded
    assert found["tokens"] == 8216 * 32


@pytest.mark.parametrize(
    ("model", "gib", "tokens", "block"),
    [
        ("llama-2-7b", 64.75, 132_608, 64),  # TensorRT-LLM#1400, 2 × 32 × 32 × 128 × 2 B
        ("qwen2.5-0.5b", 4.53, 395_776, 64),  # TensorRT-LLM#1188, 2 × 24 × 2 × 64 × 2 B
        ("qwen3-0.6b", 68.69, 643_136, 32),  # H100, 2 × 28 × 8 × 128 × 2 B
    ],
)
def test_logged_pools_hold_the_logged_tokens(model: str, gib: float, tokens: int, block: int) -> None:
    settings = {"given": Given(weights=0.0, kv_pool=gib * GIB), "block_tokens": block}
    rank = only(POLICY, settings=settings, architecture=CATALOG.architectures[model])
    found = {line.id: line.value for line in POLICY.log_lines(rank.rank, rank.pool.mid)}
    assert found["tokens"] == pytest.approx(tokens, rel=0.0015)
    assert tokens % block == 0


def test_windows_take_the_whole_length() -> None:
    rank = only(POLICY, architecture=interleaved(window=512))
    plan = rank.plan
    assert isinstance(plan, BlockRoom)
    assert plan.plan is not None
    assert not plan.plan.is_hybrid
    assert rank.plan.sequence_bytes(8192) == 8192 * 6 * 1024


def test_a_pool_that_is_missing_is_not_made_smaller_by_the_fraction() -> None:
    heavy = TensorRtLlmPolicy("TensorRT-LLM", laws(activation=fixed(80, 0.9, 1.1)))
    rank = only(heavy, 0.5)
    assert rank.pool.mid == pytest.approx(CARD - WEIGHTS - 80.5 * GIB, rel=1e-9)
    assert rank.pool.low <= rank.pool.mid <= rank.pool.high


def test_the_interval_is_the_fraction_of_what_is_free() -> None:
    spread = TensorRtLlmPolicy("TensorRT-LLM", laws(activation=fixed(2, 0.5, 2.0)))
    pool, free = only(spread, 0.9).pool, CARD - WEIGHTS - 2.5 * GIB
    assert pool.sides == pytest.approx([0.9 * (free + shift * GIB) for shift in (-2, 0, 1)], rel=1e-12)
    assert deployment().engine.memory_utilization == 0.9
