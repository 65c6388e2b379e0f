"""Measured beside predicted: the prediction is that of the answer at the same load, and what it is used for divides."""

import pytest

from app.calc.evaluate import Evaluation
from app.calc.time.serving import Estimate
from app.machine.live.machine import as_loaded
from app.machine.live.predicted import (
    COUNTED,
    DRAM,
    TENSOR,
    UNCOUNTED,
    Beside,
    beside,
    counted_flow,
    measured_mbu,
    measured_mfu,
    predicted_mbu,
    predicted_mfu,
)
from app.machine.probes.reading import Absence, Reading
from app.scenario.answer import Answer, answer
from app.scenario.scenario import Scenario
from tests.factories import shipped_catalog
from tests.machine.live.seen import LLAMA, card, server

CATALOG = shipped_catalog()
BASE = Scenario.model_validate({"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "h100-sxm-80gb"}})
LOADED = as_loaded(BASE, server(**LLAMA)).scenario
ANSWERED = answer(LOADED, CATALOG)


def rows(answered: Answer | None = ANSWERED, **more: object) -> dict[str, Beside]:
    return {row.id: row for row in beside(server(**LLAMA | more), [card()], answered)}


def test_each_figure_stands_beside_that_of_the_answer() -> None:
    serving, found = ANSWERED.evaluation.measures.serving, rows()
    assert found["ttft_p50_s"].predicted == serving.ttft_s
    assert found["itl_mean_s"].predicted == serving.tpot_s
    assert found["output_tokens_per_s"].predicted == serving.output_tokens_per_s
    middle = serving.output_tokens_per_s.mid
    assert middle is not None
    prompts = found["prompt_tokens_per_s"].predicted
    assert prompts is not None
    assert prompts.mid == pytest.approx(middle * 980 / 210)
    assert found["ttft_p99_s"].predicted is None
    assert found["output_tokens_per_s"].ratio == pytest.approx(1500 / middle)


def test_inside_and_outside_of_the_interval() -> None:
    tpot = ANSWERED.evaluation.measures.serving.tpot_s
    assert tpot.low is not None
    assert tpot.high is not None
    assert rows(itl_mean_s=tpot.low)["itl_mean_s"].inside is True
    assert rows(itl_mean_s=tpot.high * 1.01)["itl_mean_s"].inside is False
    assert rows(itl_mean_s=Absence.NEEDS_TWO_SAMPLES)["itl_mean_s"].inside is None
    assert rows(itl_mean_s=Absence.NEEDS_TWO_SAMPLES)["itl_mean_s"].ratio is None


def test_without_a_prediction_each_stands_alone() -> None:
    assert all(row.predicted is None and row.ratio is None and row.inside is None for row in rows(None).values())


def test_the_cache_in_use_is_counted() -> None:
    held, workload = ANSWERED.evaluation.measures.memory, ANSWERED.evaluation.deployment.workload
    predicted = rows()["kv_cache_usage"].predicted
    assert predicted is not None
    assert predicted.mid == pytest.approx(12 * (980 + 105) / (workload.total_tokens * held.max_concurrency))
    assert (predicted.low, predicted.high) == (None, None)


def test_the_capacity_is_that_of_all_ranks() -> None:
    scenario = BASE.model_copy(update={"parallelism": BASE.parallelism.model_copy(update={"data": 2})})
    two = answer(scenario, CATALOG)
    capacity = next(row for row in beside(server(), [], two) if row.id == "kv_capacity_tokens").predicted
    assert capacity is not None
    assert capacity.mid == 2 * two.evaluation.measures.memory.kv_pool_tokens


def test_the_servers_own_estimates_come_first() -> None:
    told = server(**LLAMA, flops_per_s=98.9e12, bytes_per_s=1.675e12)
    cards = [card(dram_activity_percent=10.0, tensor_activity_percent=10.0)]
    assert measured_mbu(told, cards, ANSWERED.evaluation).reading.value == pytest.approx(0.5)
    assert measured_mfu(told, cards, ANSWERED.evaluation).reading.value == pytest.approx(0.1, rel=1e-3)
    assert measured_mbu(told, cards, ANSWERED.evaluation).reading.read_from == "vllm:bytes_per_s"
    assert measured_mfu(told, cards, ANSWERED.evaluation).reading.read_from == "vllm:flops_per_s"


def test_then_the_cards_counters_for_bytes_and_the_count_for_arithmetic() -> None:
    cards = [card(dram_activity_percent=62.0, tensor_activity_percent=31.0), card(1, dram_activity_percent=58.0)]
    used = measured_mbu(server(**LLAMA), cards, ANSWERED.evaluation).reading
    assert (used.value, used.read_from) == (0.6, DRAM)
    assert measured_mfu(server(**LLAMA), cards, ANSWERED.evaluation).reading.read_from == COUNTED
    alone = measured_mfu(server(), cards, None)
    assert (alone.reading.value, alone.reading.read_from) == (0.31, TENSOR)
    assert "at most" in alone.note


def test_the_count_by_hand() -> None:
    """12 sequences: 1,500 tokens/s are 125 steps/s, and 7,000 tokens/s of prompts of 980 are 7.14 prompts/s."""
    flow, measures = counted_flow(server(**LLAMA), ANSWERED.evaluation), ANSWERED.evaluation.measures
    assert flow is not None
    assert flow.bytes_per_s == pytest.approx(125 * measures.decode.bytes)
    assert flow.flops_per_s == pytest.approx(125 * measures.decode.flops + 7000 / 980 * measures.prefill.flops)


def test_a_share_beyond_the_card_is_told_with_its_reason() -> None:
    used = measured_mbu(server(**LLAMA | {"output_tokens_per_s": 1e6}), [], ANSWERED.evaluation)
    assert used.reading.value is not None
    assert used.reading.value > 1
    assert "another one than what runs" in used.note


def test_why_nothing_is_known() -> None:
    assert measured_mbu(server(), [], None).reading.absence is Absence.NOT_REPORTED
    first = server(output_tokens_per_s=Absence.NEEDS_TWO_SAMPLES)
    assert measured_mfu(first, [], ANSWERED.evaluation).reading.absence is Absence.NEEDS_TWO_SAMPLES
    assert measured_mbu(server(running=0.0, output_tokens_per_s=9.0), [], None).reading.absence is (
        Absence.NOTHING_TO_MEASURE
    )
    uncounted = measured_mbu(server(running=3.0, output_tokens_per_s=9.0), [], None)
    assert (uncounted.reading.absence, uncounted.note) == (Absence.NOT_REPORTED, UNCOUNTED)
    idle = server(output_tokens_per_s=0.0)
    assert measured_mfu(idle, [], ANSWERED.evaluation).reading.absence is Absence.NOTHING_TO_MEASURE


@pytest.mark.parametrize("concurrency", [1, 16, 256, None])
def test_predicted_shares_are_ordered_and_no_more_than_all(concurrency: int | None) -> None:
    scenario = BASE.model_copy(update={"workload": BASE.workload.model_copy(update={"concurrency": concurrency})})
    found = answer(scenario, CATALOG).evaluation
    for share in (predicted_mbu(found), predicted_mfu(found)):
        assert share is not None
        assert share.low is not None
        assert share.mid is not None
        assert share.high is not None
        assert 0 < share.low <= share.mid <= share.high <= share.ceiling == 1


def test_the_document_has_it_all() -> None:
    row = Beside("a", "A", "s", Reading(2.0, "s", read_from="x"), Estimate(1.0, 1.5, 2.5, 3.0), "n")
    assert row.document() == {
        "id": "a",
        "label": "A",
        "unit": "s",
        "measured": {"value": 2.0, "unit": "s", "absence": None, "read_from": "x"},
        "predicted": {"ceiling": 1.0, "low": 1.5, "mid": 2.5, "high": 3.0},
        "ratio": 0.8,
        "inside": True,
        "note": "n",
    }


def evaluated(concurrency: int, **parts: object) -> Evaluation:
    document = BASE.document() | {"workload": {"concurrency": concurrency, "output_tokens": 500}} | parts
    return answer(Scenario.model_validate(document), CATALOG).evaluation


def middle(share: Estimate | None) -> float:
    assert share is not None
    assert share.mid is not None
    return share.mid


def test_a_stage_of_a_pipeline_has_its_part_of_a_prefill() -> None:
    """Half the FLOP of decode and of prefill at the same rate on two stages, whether predicted or counted."""
    one, two = evaluated(64), evaluated(64, parallelism={"pipeline": 2})
    rates = [found.measures.serving.output_tokens_per_s.mid or 0 for found in (one, two)]
    assert middle(predicted_mfu(two)) / rates[1] == pytest.approx(middle(predicted_mfu(one)) / rates[0] / 2, rel=0.02)
    told = server(output_tokens_per_s=2000.0, prompt_tokens_per_s=4000.0)
    flows = [counted_flow(told, found) for found in (one, two)]
    assert flows[0] is not None
    assert flows[1] is not None
    assert flows[1].flops_per_s == pytest.approx(flows[0].flops_per_s / 2, rel=0.02)


@pytest.mark.parametrize(
    "parts", [{"parallelism": {"pipeline": 2}}, {"hardware": BASE.document()["hardware"] | {"count": 2}}]
)
def test_of_two_stages_or_copies_one_request_uses_one_at_a_time(parts: dict[str, object]) -> None:
    assert middle(predicted_mbu(evaluated(1, **parts))) == pytest.approx(
        middle(predicted_mbu(evaluated(1))) / 2, rel=0.02
    )


def test_those_who_find_no_room_move_no_bytes() -> None:
    most = evaluated(64).measures.memory.max_concurrency
    assert middle(predicted_mbu(evaluated(most + 50))) == pytest.approx(middle(predicted_mbu(evaluated(most))))
    assert middle(predicted_mfu(evaluated(most + 50))) == pytest.approx(middle(predicted_mfu(evaluated(most))))
