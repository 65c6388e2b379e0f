"""SGLang's static fraction, against pools and tokens that its logs print."""

from dataclasses import replace

import pytest

from app.calc.dtypes import Dtype
from app.calc.memory.engines.parts import Given, Part, WeightSpread
from app.calc.memory.engines.sglang import SglangPolicy
from app.calc.memory.engines.slot_pool import TokenRoom
from app.calc.model.split import Split
from tests.calc.memory.engines.laws import GIB, fixed, laws, only
from tests.factories import BF16, precision, shipped_catalog

CATALOG = shipped_catalog()
POLICY = SglangPolicy("SGLang", laws())
CARD = 81_559 * 2**20
WEIGHTS = 16_060_522_496


def test_the_fraction_is_of_what_is_free_before_loading() -> None:
    rank = only(POLICY, 0.88)
    assert rank.budget_bytes == pytest.approx((CARD - 0.5 * GIB) * 0.88, rel=1e-12)
    assert rank.pool.mid == pytest.approx((CARD - 0.5 * GIB) * 0.88 - WEIGHTS, rel=1e-12)
    assert POLICY.pool_formula == "max(0, (M − N) × u − W)"


def test_activations_and_graphs_find_room_in_the_rest() -> None:
    rank = only(POLICY, 0.88)
    assert {o.part: o.is_charged for o in rank.overheads} == {
        Part.DRIVER: False,
        Part.ACTIVATION: False,
        Part.NON_FRAMEWORK: True,
        Part.GRAPHS: False,
    }
    larger = only(SglangPolicy("SGLang", laws(activation=fixed(9), graphs=fixed(9))), 0.88)
    assert larger.pool == rank.pool


def test_qwq_32b_on_four_cards_of_24_gb() -> None:
    """A log: 21.63 GB free before loading, 15.54 GB loaded, a pool of 2.85 GB (K 1.42, V 1.42), 46,611 tokens."""
    given = Given(total_memory=21.63 * GIB, weights=15.54 * GIB, non_framework=0.0)
    model = CATALOG.architectures["qwq-32b"]
    rank = only(
        POLICY,
        0.85,
        settings={"given": given, "block_tokens": 1},
        architecture=model,
        accelerator=CATALOG.devices["rtx-3090"],
        split=Split(4),
    )
    assert rank.pool.mid / GIB == pytest.approx(21.63 * 0.85 - 15.54, abs=1e-9)
    assert round(rank.pool.mid / GIB, 2) == 2.85
    found = {line.id: line for line in POLICY.log_lines(rank.rank, rank.pool.mid)}
    assert found["pool"].text == "2.85 GB"
    # 2 × 64 layers × 2 heads × 128 × 2 B of a token on each card
    assert found["tokens"].value == int((21.63 * 0.85 - 15.54) * GIB / 65_536) == 46_620
    assert found["tokens"].value == pytest.approx(46_611, rel=5e-4)  # the log's sizes are printed with two digits


def test_r1_distill_on_an_rtx_3090() -> None:
    """A log of R1-Distill-Qwen-7B: 22.76 GB free before loading and a fraction of 0.88 leave a pool of 5.64 GB."""
    loaded = 22.76 * 0.88 - 5.64  # 14.39 GB
    model = CATALOG.architectures["qwen2.5-7b"]  # the same shape
    given = Given(total_memory=22.76 * GIB, weights=loaded * GIB, non_framework=0.0)
    settings = {"given": given, "block_tokens": 1}
    card = CATALOG.devices["rtx-3090"]
    rank = only(POLICY, 0.88, settings=settings, architecture=model, accelerator=card)
    assert rank.pool.mid / GIB == pytest.approx(5.64, abs=0.005)
    # 15.23 GB of tensors: what was loaded beside them is the allocator's, a hundredth or two.
    assert only(POLICY, architecture=model).weights.mid / GIB == pytest.approx(loaded, rel=0.02)


def test_deepseek_v3_2_keeps_48_068_bytes_of_a_token() -> None:
    """A log on eight B200: 43.67 GB are 975,424 tokens, with indexers in the budget; 61 × (656 + 132) B."""
    model = CATALOG.architectures["deepseek-v3.2"]
    fp8 = replace(BF16, weights=CATALOG.plans["deepseek-v3.2"], kv_cache=Dtype.FP8)
    rank = only(
        POLICY,
        architecture=model,
        accelerator=CATALOG.devices["b200-sxm"],
        precision=fp8,
        split=Split(1, data=8, expert=8),
        settings={"given": Given(kv_pool=43.67 * GIB), "block_tokens": 64},
    )
    plan = rank.plan
    assert isinstance(plan, TokenRoom)
    assert plan.cell_bytes == 61 * (656 + 132) == 48_068
    assert plan.tokens(43.67 * GIB) == pytest.approx(975_424, rel=2e-4)
    assert 975_424 % 64 == 0


def test_a_70b_model_on_eight_cards_of_141_gb() -> None:
    """A log: 106.62 GB are 2,795,207 tokens of 40,960 B."""
    model = CATALOG.architectures["llama-3.1-70b"]
    settings = {"given": Given(kv_pool=106.62 * GIB), "block_tokens": 1}
    card = CATALOG.devices["h200-sxm"]
    rank = only(POLICY, architecture=model, accelerator=card, split=Split(8), settings=settings)
    found = {line.id: line.value for line in POLICY.log_lines(rank.rank, rank.pool.mid)}
    assert found["tokens"] == pytest.approx(2_795_207, rel=1e-4)


def test_a_fraction_below_the_share_of_the_weights_leaves_nothing() -> None:
    """InferenceX#2128: 125.65 GB of weights in 0.88 of 140.4 GB; the least fraction that works is 0.9113."""
    given = Given(total_memory=137.9 * GIB, weights=125.65 * GIB, non_framework=0.0)  # 12.25 GB free after loading
    card = CATALOG.devices["h200-sxm"]
    for fraction, is_enough in ((0.88, False), (0.9113, True)):
        rank = only(POLICY, fraction, settings={"given": given}, accelerator=card)
        assert (rank.pool.mid > 0) is is_enough


def test_the_interval_of_the_pool_is_that_of_weights_and_of_what_is_free() -> None:
    spread = SglangPolicy("SGLang", laws(alone=fixed(1, 0.5, 3.0), weights=WeightSpread(0.98, 1.05)))
    pool = only(spread, 0.8).pool
    below, above = (0.05 * WEIGHTS, 0.8 * 2 * GIB), (0.02 * WEIGHTS, 0.8 * 0.5 * GIB)
    assert pool.mid - pool.low == pytest.approx((below[0] ** 2 + below[1] ** 2) ** 0.5, rel=1e-9)
    assert pool.high - pool.mid == pytest.approx((above[0] ** 2 + above[1] ** 2) ** 0.5, rel=1e-9)


def test_a_quantized_checkpoint_leaves_more() -> None:
    model = CATALOG.architectures["llama-3.1-8b"]
    half = only(POLICY, precision=precision(), architecture=model)
    assert only(POLICY, precision=replace(BF16, kv_cache=Dtype.FP8)).plan.unit_bytes == half.plan.unit_bytes / 2
