"""Narrower numbers: bytes by hand, what does not halve, and the change that leads there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.accelerator import Accelerator
from app.calc.deployment import Deployment
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.measure import measure
from app.calc.optimize.optimization import Asked, Level
from app.calc.optimize.quantization import CACHE, READ, RIDGE, SCALES, SPEC, WEIGHTS, words
from app.calc.optimize.sides import TPOT
from tests.calc.optimize.asking import by_hand, changed, check, column, models_and_cards, numbers, of_product
from tests.calc.strategies import deployments, repeatable
from tests.factories import deployment, precision, scenario_document, workload

NARROW, WIDE = 6_979_321_856, 1_050_939_392  # of Llama-3.1-8B: layers' matrices; embedding, head and norms
FP8 = precision(WeightFormat.FP8, Dtype.FP8, Dtype.FP8)


def test_the_reference_case_in_fp8() -> None:
    found = SPEC.compare(by_hand())
    assert not found.is_used
    assert found.change == {"precision": {"weights": "fp8", "kv_cache": "fp8", "compute": "fp8"}}
    scales = NARROW * 4 / 128**2
    assert numbers(found, WEIGHTS) == (16_060_522_496, NARROW + scales + 2 * WIDE)
    before, after = numbers(found, SCALES)
    assert before == 0
    assert after == pytest.approx(scales / (NARROW + scales + 2 * WIDE))
    assert numbers(found, CACHE) == (1500 * 131_072, 1500 * 65_536)
    before, after = numbers(found, RIDGE, Level.CEILING)
    assert before == pytest.approx(989e12 / 3.35e12)
    assert after == pytest.approx(1979e12 / 3.35e12)
    assert "1.77 times less" in found.sentence
    assert "from 295 to 591 FLOP/B" in found.sentence


def test_bytes_of_each_format_count_their_scales() -> None:
    stored = column(SPEC.compare(by_hand()), "weights")
    assert stored == {
        "W16A16 KV16": 16_060_522_496,
        "W16A16 KV8": 16_060_522_496,
        "W8A16 KV16 (FP8)": pytest.approx(NARROW * (8 + 32 / 128**2) / 8 + 2 * WIDE),
        "W8A8 KV8 (FP8)": pytest.approx(NARROW * (8 + 32 / 128**2) / 8 + 2 * WIDE),
        "W4A16 KV16 (INT4)": pytest.approx(NARROW * (4 + 20 / 128) / 8 + 2 * WIDE),
    }


def test_each_part_moves_what_is_its_own() -> None:
    found = SPEC.compare(by_hand(workload=workload(1, 1, 1)))
    tpot = column(found, "tpot_ceiling")
    assert tpot["W16A16 KV8"] == pytest.approx(tpot["W16A16 KV16"], rel=1e-4)  # a token of cache is nothing
    # All weights but the embedding are read; halved they leave the head, and norms, in 16 bits.
    embedding = 525_336_576
    assert column(found, "read_bytes")["W16A16 KV16"] == pytest.approx(2 * (NARROW + WIDE - embedding), rel=1e-4)
    halved = 2 * (WIDE - embedding) + NARROW
    assert tpot["W8A16 KV16 (FP8)"] == pytest.approx(halved / 3.35e12, rel=1e-3)


def test_a_card_without_the_rate_keeps_the_sixteen_bit_roof() -> None:
    found = SPEC.compare(of_product(hardware="a100-sxm-80gb"))
    before, after = numbers(found, RIDGE, Level.CEILING)
    assert before == after == pytest.approx(312e12 / 2.039e12)
    assert found.change["precision"]["compute"] == "bf16"
    assert "stays in BF16, and so does its roof" in found.sentence
    assert "W8A8 KV16 (INT8)" in column(found, "weights")


def test_four_bit_rates_bring_two_formats_more() -> None:
    rows = column(SPEC.compare(of_product(hardware="b200-sxm")), "weights")
    assert {"W4A4 KV8 (MXFP4)", "W4A4 KV8 (NVFP4)"} <= set(rows)
    assert rows["W4A4 KV8 (NVFP4)"] == pytest.approx(NARROW * 4.5 / 8 + 2 * WIDE)
    assert not any("A4" in row for row in column(SPEC.compare(by_hand()), "weights"))


def test_states_of_a_hybrid_do_not_halve() -> None:
    asked = of_product(
        "qwen3.5-27b", workload={"prompt_tokens": 8000, "output_tokens": 500}, precision={"kv_cache": "fp8"}
    )
    found = SPEC.compare(asked)
    states = 153_944_064
    rows = 16 * 2 * 4 * 256 * 8500
    assert numbers(found, CACHE) == (2 * rows + states, rows + states)
    assert f"shrinks {(2 * rows + states) / (rows + states):.3g} times, not 2 times" in found.sentence
    assert "154 MB of recurrent states" in found.sentence


def test_windows_alone_halve_with_the_rest() -> None:
    found = SPEC.compare(of_product("gemma-3-27b", "h200-sxm"))
    before, after = numbers(found, CACHE)
    assert before is not None
    assert after == before / 2


def test_what_ships_narrow_is_used_and_closes_to_sixteen_bits() -> None:
    asked = of_product("deepseek-v3", "h200-sxm", parallelism={"tensor": 8})
    found = SPEC.compare(asked)
    assert found.is_used
    assert found.change["precision"] == {"weights": "bf16", "kv_cache": "bf16", "compute": "bf16"}
    assert numbers(found, WEIGHTS)[0] == 2 * 671_026_419_200
    assert "stays as wide as it was" in found.sentence
    assert "weights took" not in found.sentence


@pytest.mark.parametrize("precisions", [{}, {"weights": "fp8", "kv_cache": "fp8"}, {"weights": "int4"}])
def test_the_change_leads_to_the_other_side(precisions: dict[str, str]) -> None:
    document = scenario_document(precision=precisions, engine={"weights_bytes": 1.5e10, "kv_pool_bytes": 4e10})
    found = SPEC.compare(of_product(precision=precisions, engine=document["engine"]))
    there = changed(document, found)
    target = numbers(found, TPOT, Level.CEILING)[0 if found.is_used else 1]
    assert there.measures.decode.ceiling_s == target
    assert there.deployment.engine.given.weights is None
    back = SPEC.compare(there)
    assert back.is_used is not found.is_used


def test_nothing_of_the_scenario_is_worked_out_twice() -> None:
    asked = by_hand()
    served = SPEC.compare(Asked(asked.deployment, asked.measures)).figures
    assert any(figure.before == asked.measures.serving.tpot_s.ceiling for figure in served)


def test_time_gains_less_than_bytes_where_launches_stay() -> None:
    asked = of_product(workload={"prompt_tokens": 1000, "output_tokens": 500, "concurrency": 1})
    found = SPEC.compare(asked)
    read, took = numbers(found, READ), numbers(found, TPOT, Level.EXPECTED)
    assert None not in (*read, *took)
    assert (took[0] or 0) / (took[1] or 1) < (read[0] or 0) / (read[1] or 1)
    assert "took no less" in found.sentence


@repeatable
@given(deployments(workload=st.sampled_from([workload(1, 1, 1), workload(4000, 200, 1), workload(50, 50, 5000)])))
def test_no_format_beats_its_floor(here: Deployment) -> None:
    found = SPEC.compare(Asked(here, measure(here)))
    check(found, "quantization")
    read, tpot, room = (column(found, name) for name in ("read_bytes", "tpot_ceiling", "capacity"))
    for row, moved in read.items():
        assert (tpot[row] or 0) >= (moved or 0) / here.accelerator.bandwidth_bytes_per_s * (1 - 1e-9)
    wide, narrow = list(room)[:2]  # the cache alone narrowed
    assert (room[narrow] or 0) >= (room[wide] or 0)
    assert (tpot[narrow] or 0) <= (tpot[wide] or 0) * (1 + 1e-9) or here.workload.concurrency is None


def test_it_is_told_of_any_model_and_card() -> None:
    for asked in models_and_cards():
        found = SPEC.compare(asked)
        check(found, "quantization")
        for row in () if found.variants is None else found.variants.rows:
            ceiling, expected = row.values[4], row.values[5]
            assert ceiling is not None
            assert expected is None or expected >= ceiling


def test_without_a_wide_rate_there_is_no_yardstick() -> None:
    card = Accelerator("x", "X", 80e9, None, 1e12, {Dtype.FP8: 1e15})
    here = deployment(accelerator=card, precision=FP8)
    found = SPEC.compare(Asked(here, measure(here)))
    check(found, "quantization")
    assert found.refused == "X has no published rate of 16-bit arithmetic to compare with."


def test_words_of_a_precision() -> None:
    assert words(FP8) == "W8A8 KV8 (FP8)"
    assert words(precision()) == "W16A16 KV16"
