"""The small parts that the calculators stand on: numbers and arrays, cards, costs, notices, choices of type."""

from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest

from app.calc.accelerator import Accelerator, MemoryBasis, UnknownPeakError
from app.calc.broadcast import floor, maximum, minimum, scalar
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.evaluate import FORMULA_VERSION, evaluate
from app.calc.measure import cost, joules_per_token, measure, usd_per_million_tokens
from app.calc.memory.engines.parts import Given
from app.calc.notices import notices
from app.calc.time.serving import output_tokens_per_s, residency_s
from tests.factories import deployment, engine, h100_sxm, precision, workload


def test_numbers_stay_plain_and_arrays_go_element_by_element() -> None:
    assert type(maximum(1, 2.0)) is float
    assert type(minimum(1.0, 2)) is float
    assert (floor(2.7), floor(-2.7)) == (2.0, -3.0)
    low, high = np.array([1.0, 5.0]), np.array([[3.0], [4.0]])
    assert np.array_equal(maximum(low, high), [[3, 5], [4, 5]])
    assert np.array_equal(minimum(low, 3.0), [1, 3])
    assert np.array_equal(floor(np.array([0.9, -0.1])), [0, -1])
    assert scalar(np.array(3.5)) == 3.5
    with pytest.raises(TypeError):
        scalar(low)


def test_a_rate_that_is_not_published_is_refused_by_name() -> None:
    with pytest.raises(UnknownPeakError, match=r"^H100 SXM has no published dense int4 rate; known rates: fp32, tf32"):
        h100_sxm().peak(Dtype.INT4)
    with pytest.raises(UnknownPeakError, match="known rates: none"):
        Accelerator("x", "X", 1e9, None, 1e9).peak(Dtype.BF16)
    with pytest.raises(UnknownPeakError):
        evaluate(deployment(precision=precision(WeightFormat.INT4, Dtype.BF16, Dtype.INT4)))


def test_memory_is_what_the_driver_reports_else_what_is_marketed() -> None:
    assert h100_sxm().memory_bytes(MemoryBasis.REPORTED) == 85_520_809_984
    assert h100_sxm().memory_bytes(MemoryBasis.MARKETED) == 80e9
    assert replace(h100_sxm(), memory_reported_bytes=None).memory_bytes(MemoryBasis.REPORTED) == 80e9


def test_cost_of_a_token_in_money_and_energy() -> None:
    assert usd_per_million_tokens(3.60, 1000) == pytest.approx(1.00)
    assert joules_per_token(700, 1000) == pytest.approx(0.7)
    assert usd_per_million_tokens(np.array([3.6, 7.2]), 1000) == pytest.approx([1, 2])
    assert joules_per_token(700, np.array([1000.0, 700.0])) == pytest.approx([0.7, 1])


@pytest.mark.parametrize(("price", "power"), [(None, 700.0), (2.95, None), (2.95, 700.0), (0.0, 700.0)])
def test_cost_says_only_what_is_known(price: float | None, power: float | None) -> None:
    found = cost([(replace(h100_sxm(), price_usd_per_hour=price, tdp_w=power), 1)], 1000.0)
    assert found is not None
    assert found.usd_per_hour == price
    assert (found.usd_per_million_output_tokens is None) is (price is None)
    assert (found.joules_per_output_token is None) is (power is None)


def test_without_price_and_power_there_is_no_cost() -> None:
    assert cost([(replace(h100_sxm(), price_usd_per_hour=None, tdp_w=None), 1)], 1000.0) is None


def test_a_batch_stays_for_the_longer_of_one_answer_and_the_arithmetic_of_all() -> None:
    assert residency_s(3.0, 2.0) == 3.0
    assert residency_s(3.0, 4.0) == 4.0
    assert output_tokens_per_s(64, 500, 4.0) == 8000
    assert np.array_equal(output_tokens_per_s(np.array([1.0, 64.0]), 500, 4.0), [125, 8000])


@pytest.mark.parametrize(
    ("compute", "kv_cache", "wide", "attention"),
    [
        ("bf16", "bf16", "bf16", "bf16"),
        ("bf16", "fp8", "bf16", "bf16"),
        ("fp16", "fp8", "fp16", "fp16"),
        ("tf32", "bf16", "tf32", "tf32"),
        ("fp8", "bf16", "bf16", "bf16"),
        ("fp8", "fp8", "bf16", "fp8"),
        ("int8", "int8", "bf16", "int8"),
        ("fp8", "int4", "bf16", "fp8"),
    ],
)
def test_what_is_not_quantized_is_computed_in_16_bits_or_more(
    compute: str, kv_cache: str, wide: str, attention: str
) -> None:
    asked = deployment(precision=precision(WeightFormat.FP8, Dtype(kv_cache), Dtype(compute)))
    assert (asked.wide_dtype, asked.attention_dtype) == (Dtype(wide), Dtype(attention))


@pytest.mark.parametrize(
    ("prompt", "rate", "cached"), [(1000, 0.0, 0), (1000, 0.5, 500), (1000, 1.0, 999), (1, 1.0, 0), (3, 0.5, 1)]
)
def test_whole_tokens_are_found_in_the_prefix_cache_and_never_all(prompt: int, rate: float, cached: int) -> None:
    asked = workload(prompt_tokens=prompt, prefix_hit_rate=rate)
    assert asked.cached_prompt_tokens == cached
    assert asked.total_tokens == prompt + 500
    assert asked.mid_answer_tokens == prompt + 250


def codes(**changes: object) -> list[str]:
    asked = deployment(**changes)
    return [notice.code for notice in notices(asked, measure(asked))]


def test_notices_say_what_makes_a_number_less_than_it_seems() -> None:
    unknown = replace(h100_sxm(), memory_reported_bytes=None)
    assert codes() == ["ideal_engine"]
    assert codes(workload=workload(prompt_tokens=131_072)) == ["context_beyond_model", "ideal_engine"]
    assert codes(workload=workload(prompt_tokens=130_572)) == ["ideal_engine"]  # with the answer exactly 131,072
    assert codes(engine=engine(max_model_len=1499)) == ["context_beyond_max_model_len", "ideal_engine"]
    assert codes(engine=engine(max_model_len=1500)) == ["ideal_engine"]
    assert codes(accelerator=unknown) == ["memory_not_reported", "ideal_engine"]
    assert codes(accelerator=unknown, memory_basis=MemoryBasis.MARKETED) == ["ideal_engine"]
    assert codes(engine=engine(given=Given(kv_pool=90e9))) == ["pool_exceeds_card", "ideal_engine"]
    assert codes(engine=engine(given=Given(kv_pool=80e9))) == ["weights_yield_to_pool", "ideal_engine"]
    assert codes(engine=engine(max_num_seqs=63)) == ["requests_wait", "ideal_engine"]
    assert codes(engine=engine(max_num_seqs=64)) == ["ideal_engine"]


def test_a_target_below_the_ceiling_is_out_of_reach() -> None:
    found = measure(deployment())
    ttft, tpot = found.serving.ttft_s.ceiling, found.serving.tpot_s.ceiling
    assert codes(workload=workload(slo_ttft_s=ttft, slo_tpot_s=tpot)) == ["ideal_engine"]
    assert codes(workload=workload(slo_ttft_s=ttft * 0.99)) == ["ttft_out_of_reach", "ideal_engine"]
    assert codes(workload=workload(slo_tpot_s=tpot * 0.99)) == ["tpot_out_of_reach", "ideal_engine"]


def test_notices_are_sentences() -> None:
    asked = deployment(
        workload=workload(prompt_tokens=200_000, slo_ttft_s=1e-6, slo_tpot_s=1e-6),
        engine=engine(max_model_len=1000, max_num_seqs=1, given=Given(kv_pool=80e9)),
    )
    for notice in notices(asked, measure(asked)):
        assert notice.message.endswith(".")
        assert notice.message[0].isupper() or notice.message[0].isdigit()


def test_what_is_evaluated_cannot_be_changed() -> None:
    asked = deployment()
    for part in (asked, asked.architecture, asked.accelerator, asked.precision, asked.engine, asked.workload):
        with pytest.raises(FrozenInstanceError):
            setattr(part, fields(part)[0].name, None)
    with pytest.raises(TypeError):
        asked.accelerator.peak_flops_per_s[Dtype.BF16] = 1.0  # type: ignore[index]


def test_the_formulas_have_a_version() -> None:
    assert FORMULA_VERSION
