"""The story that the product tells: every number of the reference case, with its working.

Llama-3.1-8B (8,030,261,248 parameters, told as 8.03e9; 32 layers, 8 KV heads of 128, 16-bit) on one H100 SXM
(989e12 FLOP/s, 3.35e12 B/s, 80e9 B). Numbers told in words are rounded there; the tolerance here is 0.1 % or less.
"""

from dataclasses import replace

import pytest

from app.calc.accelerator import Bound, MemoryBasis, attainable_flops_per_s, ridge_flops_per_byte, time_s
from app.calc.dtypes import Dtype
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.model.parameters import count_parameters, weight_bytes
from app.calc.time.rule_of_thumb import (
    RuleOfThumb,
    compute_idle_fraction,
    decode_step_s,
    kv_capacity_tokens,
    prefill_flops,
    rule_of_thumb,
    total_latency_s,
)
from tests.factories import BF16, deployment, h100_sxm, h200_sxm, llama_3_1_8b, workload

PEAK, BANDWIDTH, MEMORY = 989e12, 3.35e12, 80e9
N, WEIGHTS = 8.03e9, 16.06e9
A_THOUSANDTH = 1e-3
CHAT = workload(prompt_tokens=3596, output_tokens=500)  # 4,096 tokens when it is complete


def near(value: float, rel: float = A_THOUSANDTH) -> object:
    return pytest.approx(value, rel=rel)


def rule(batch: int, **changes: object) -> RuleOfThumb:
    return rule_of_thumb(deployment(**changes), batch)


def test_the_model_has_8_030_261_248_parameters_in_16_060_522_496_bytes() -> None:
    counts = count_parameters(llama_3_1_8b())
    assert counts.total == 8_030_261_248 == near(8.03e9)
    assert weight_bytes(counts, BF16.weights) == 16_060_522_496 == near(16.06e9)


def test_the_arithmetic_alone_would_allow_61_600_tokens_a_second_295_times_what_one_user_gets() -> None:
    allowed = PEAK / prefill_flops(N, 1)
    assert allowed == near(61_600)
    assert allowed / 208.6 == near(295)
    one = rule(1)
    assert PEAK / (2 * 8_030_261_248) / one.decode_tokens_per_s == near(295.2)


def test_prefill_of_1000_tokens_is_16_06_teraflop_in_16_2_ms_and_1000_flop_per_byte() -> None:
    assert prefill_flops(N, 1000) == 16.06e12
    assert time_s(16.06e12, WEIGHTS, PEAK, BANDWIDTH) == near(16.24e-3)  # 16.06e12 ÷ 989e12, told as 16.2 ms
    assert near(1000) == 16.06e12 / WEIGHTS
    found = rule(1)
    assert found.prefill_flops == 2 * 8_030_261_248 * 1000
    assert found.prefill_s == pytest.approx(16.2e-3, abs=0.05e-3)
    assert found.prefill_s == found.prefill_flops / PEAK  # compute-bound


def test_a_prefill_shorter_than_the_ridge_takes_one_reading_of_the_weights() -> None:
    assert rule(1, workload=workload(prompt_tokens=1)).prefill_s == near(4.794e-3)
    assert rule(1, workload=workload(prompt_tokens=295)).prefill_s == near(4.794e-3)
    assert rule(1, workload=workload(prompt_tokens=296)).prefill_s > 4.8e-3


def test_one_decode_step_of_one_user_takes_4_79_ms_or_208_6_tokens_a_second() -> None:
    assert decode_step_s(WEIGHTS, N, 1, PEAK, BANDWIDTH) == near(4.794e-3)
    found = rule(1)
    assert found.decode_step_s == pytest.approx(4.79e-3, abs=0.005e-3)
    assert found.decode_tokens_per_s == near(208.6)


def test_the_arithmetic_of_that_step_takes_0_016_ms_and_waits_99_6_percent_of_it() -> None:
    assert prefill_flops(N, 1) / PEAK == pytest.approx(0.016e-3, abs=0.0005e-3)
    assert compute_idle_fraction(N, 1, 4.79e-3, PEAK) == pytest.approx(0.9966, abs=1e-4)
    assert 0.996 < rule(1).compute_idle_fraction == pytest.approx(0.9966, abs=1e-4)


def test_the_ridge_point_is_295_2_flop_per_byte() -> None:
    assert ridge_flops_per_byte(PEAK, BANDWIDTH) == near(295.2)
    assert rule(1).ridge_flops_per_byte == near(295.2)
    assert attainable_flops_per_s(295.2, PEAK, BANDWIDTH) == near(PEAK)
    assert attainable_flops_per_s(1, PEAK, BANDWIDTH) == BANDWIDTH
    assert attainable_flops_per_s(1e9, PEAK, BANDWIDTH) == PEAK


def test_decode_intensity_of_one_user_is_1_flop_per_byte_and_grows_with_the_batch() -> None:
    assert rule(1).decode_intensity_flops_per_byte == 1
    assert rule(64).decode_intensity_flops_per_byte == 64


def test_a_step_is_4_79_ms_up_to_295_users() -> None:
    for batch in (1, 64, 295):
        assert rule(batch).decode_step_s == 16_060_522_496 / BANDWIDTH == near(4.794e-3)
    assert rule(296).decode_step_s == 2 * 8_030_261_248 * 296 / PEAK > 4.8e-3


def test_64_users_get_13_350_tokens_a_second_from_the_weights_alone() -> None:
    assert 64 / float(decode_step_s(WEIGHTS, N, 64, PEAK, BANDWIDTH)) == near(13_350)
    assert rule(64).decode_tokens_per_s == near(13_350)


def test_512_users_take_8_31_ms_a_step_61_600_tokens_a_second_120_each() -> None:
    assert decode_step_s(WEIGHTS, N, 512, PEAK, BANDWIDTH) == pytest.approx(8.31e-3, abs=0.005e-3)
    found = rule(512)
    assert found.decode_step_s == pytest.approx(8.31e-3, abs=0.005e-3)
    assert found.decode_tokens_per_s == near(61_600)
    assert found.decode_tokens_per_s / 512 == pytest.approx(120, abs=0.5)
    assert found.compute_idle_fraction == pytest.approx(0, abs=1e-12)


def test_a_token_of_cache_is_128_kib() -> None:
    token = kv_bytes_per_sequence(llama_3_1_8b(), 1, Dtype.BF16)
    assert token == 2 * 32 * 8 * 128 * 2 == 131_072 == 128 * 2**10
    assert rule(1).kv_bytes_per_token == 131_072


def test_a_chat_of_4096_tokens_holds_512_mib_and_a_context_of_131072_holds_16_gib() -> None:
    assert kv_bytes_per_sequence(llama_3_1_8b(), 4096, Dtype.BF16) == 512 * 2**20
    assert kv_bytes_per_sequence(llama_3_1_8b(), 131_072, Dtype.BF16) == 16 * 2**30


def test_80_gb_leave_room_for_487_800_tokens_or_119_users_at_4096() -> None:
    assert kv_capacity_tokens(MEMORY, WEIGHTS, 131_072) == near(487_800, rel=1e-4)
    found = rule(64, workload=CHAT)
    assert found.kv_capacity_tokens == 487_819  # (80e9 − 16,060,522,496) ÷ 131,072 = 487,819.5
    assert found.kv_capacity_tokens == near(487_800, rel=1e-4)
    assert found.kv_capacity_users == 119


def test_64_users_at_4096_take_15_05_ms_a_step_and_get_4_252_tokens_a_second() -> None:
    cache = 64 * 4096 * 131_072
    assert cache == near(34.36e9)
    assert decode_step_s(WEIGHTS, N, 64, PEAK, BANDWIDTH, cache) == pytest.approx(15.05e-3, abs=0.005e-3)
    found = rule(64, workload=CHAT)
    assert found.kv_step_s == pytest.approx(15.05e-3, abs=0.005e-3)
    assert found.kv_tokens_per_s == near(4252)
    assert cache / 16_060_522_496 == pytest.approx(2.1, abs=0.05)


def test_the_whole_answer_of_0_2_s_and_500_steps_of_0_02_s_is_10_2_s_98_percent_of_it_decode() -> None:
    assert total_latency_s(0.2, 0.02, 500) == pytest.approx(10.2, rel=1e-12)
    assert 0.02 * 500 / float(total_latency_s(0.2, 0.02, 500)) == pytest.approx(0.98, abs=0.0005)
    found = rule(1)
    assert found.total_latency_s == found.prefill_s + 500 * found.decode_step_s


def test_an_h200_gives_one_user_299_tokens_a_second() -> None:
    assert h200_sxm().bandwidth_bytes_per_s / WEIGHTS == near(299)
    assert rule(1, accelerator=h200_sxm()).decode_tokens_per_s == near(299)
    ratio = rule(1, accelerator=h200_sxm()).decode_tokens_per_s / rule(1).decode_tokens_per_s
    assert ratio == near(4.8 / 3.35)  # the same arithmetic: bandwidth alone decides
    assert rule(1, accelerator=h200_sxm()).prefill_s == rule(1).prefill_s


def test_the_rule_of_thumb_divides_the_marketed_memory_whatever_the_basis() -> None:
    for basis in MemoryBasis:
        assert rule(64, workload=CHAT, memory_basis=basis).kv_capacity_tokens == 487_819


def test_a_model_larger_than_the_card_leaves_room_for_no_token() -> None:
    small = replace(h100_sxm(), memory_marketed_bytes=16e9)
    found = rule(1, accelerator=small)
    assert (found.kv_capacity_tokens, found.kv_capacity_users) == (0, 0)


def test_bounds_are_named_as_clients_know_them() -> None:
    assert [bound.value for bound in Bound] == ["memory_bandwidth", "compute", "interconnect"]
