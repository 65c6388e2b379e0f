"""Everything expected of a deployment: in order, in sum, refused and withheld where it must be."""

from dataclasses import replace
from typing import Any

import pytest

from app.calc.deployment import Deployment
from app.calc.evaluate import evaluate
from app.calc.measure import Measures, measure
from app.calc.time.serving import Estimate
from app.calc.verdict import Limiter, State
from app.scenario.resolve import resolve
from tests.calc.time.expected.test_floors import drawn
from tests.factories import custom_card, scenario, shipped_catalog

CROWDS = (1, 7, 64, 1000, None)


def asked(model: str = "llama-3.1-8b", hardware: Any = "h100-sxm-80gb", **sections: Any) -> Deployment:
    return resolve(scenario(model, hardware, **sections), shipped_catalog()).deployment


def crowded(deployment: Deployment, crowd: int | None) -> Deployment:
    return replace(deployment, workload=replace(deployment.workload, concurrency=crowd))


def times(found: Measures) -> list[Estimate]:
    served = found.serving
    return [
        found.prefill_s,
        found.decode_s,
        served.ttft_s,
        served.tpot_s,
        served.tpot_inclusive_s,
        served.total_latency_s,
    ]


def rates(found: Measures) -> list[Estimate]:
    served = found.serving
    return [served.output_tokens_per_s, served.output_tokens_per_s_per_user, served.total_tokens_per_s]


def test_every_estimate_is_in_order_and_on_its_side_of_the_ceiling() -> None:
    slack = 1 + 1e-12
    for number, deployment in enumerate(drawn(7, 150)):
        found = measure(crowded(deployment, CROWDS[number % len(CROWDS)]))
        for time in times(found):
            sides = [side for side in (time.low, time.mid, time.high) if side is not None]
            assert sides == sorted(sides)
            assert all(side >= time.ceiling / slack for side in sides)
        for rate in rates(found):
            sides = [side for side in (rate.low, rate.mid, rate.high) if side is not None]
            assert sides == sorted(sides)
            assert all(side <= rate.ceiling * slack for side in sides)


def test_the_parts_of_a_tpot_sum_to_it_and_none_is_negative() -> None:
    for number, deployment in enumerate(drawn(8, 150)):
        found = measure(crowded(deployment, CROWDS[number % len(CROWDS)]))
        assert found.expected is not None
        causes = found.expected.causes
        parts = (
            causes.efficiency_s,
            causes.calls_s,
            causes.collectives_s,
            causes.host_s,
            causes.interference_s,
        )
        assert causes.total_s == pytest.approx(found.serving.tpot_s.mid, rel=1e-9)
        assert min(parts) >= -1e-12 * causes.total_s


def test_first_token_and_pace_make_the_answer() -> None:
    found = measure(asked(workload={"concurrency": 48}))
    served, n = found.serving, 500
    assert served.ttft_s.mid is not None
    assert served.tpot_s.mid is not None
    assert served.total_latency_s.mid == pytest.approx(served.ttft_s.mid + n * served.tpot_s.mid)
    assert served.output_tokens_per_s.mid == pytest.approx(48 * n / (served.total_latency_s.mid or 0))
    assert served.tpot_inclusive_s.mid == pytest.approx((served.total_latency_s.mid or 0) / n)


def test_above_capacity_the_first_token_is_refused_and_the_rest_queues() -> None:
    inside, beyond = measure(asked(workload={"concurrency": None})), measure(asked(workload={"concurrency": 2000}))
    assert beyond.serving.ttft_s.mid is None
    assert beyond.expected is not None
    assert beyond.expected.refused is not None
    assert "2,000" in beyond.expected.refused
    assert beyond.serving.output_tokens_per_s.mid == pytest.approx(inside.serving.output_tokens_per_s.mid)
    room = beyond.memory.max_concurrency
    assert beyond.serving.total_latency_s.mid == pytest.approx((inside.serving.total_latency_s.mid or 0) * 2000 / room)
    assert inside.serving.ttft_s.mid is not None


def test_more_memory_never_lowers_the_rate_or_lengthens_the_answer() -> None:
    before = (0.0, float("inf"))
    for memory_gb in (24, 40, 80, 160, 320):
        card = custom_card(memory_gb=memory_gb)
        served = measure(asked(hardware={"custom": card}, workload={"concurrency": 1000})).serving
        now = (served.output_tokens_per_s.mid or 0.0, served.total_latency_s.mid or 0.0)
        assert now[0] >= before[0]
        assert now[1] <= before[1] * (1 + 1e-12)
        before = now


@pytest.mark.parametrize(
    ("sections", "why"),
    [
        ({"hardware": "groq-lpu-v1"}, "memory like that of"),
        ({"techniques": {"speculative": {"draft_tokens": 3}}}, "speculative"),
        ({"workload": {"prompt_tokens": 2_000_000}}, "tokens a request"),
        ({"workload": {"prompt_tokens": 1, "output_tokens": 1, "concurrency": 100_000}}, "at a time"),
    ],
)
def test_no_interval_is_claimed_where_nothing_was_measured(sections: dict[str, Any], why: str) -> None:
    found = measure(asked(**sections))
    assert found.expected is not None
    assert why in (found.expected.unclaimed or "")
    assert found.serving.tpot_s.mid is not None
    assert (found.serving.tpot_s.low, found.serving.tpot_s.high) == (None, None)


def test_an_unseen_card_or_engine_says_so_and_has_the_wider_interval() -> None:
    def width(found: Measures) -> float:
        tpot = found.serving.tpot_s
        return (tpot.high or 0.0) / (tpot.low or 1.0)

    seen = measure(asked())
    assert seen.expected is not None
    assert seen.expected.is_seen
    for strange in (
        asked(hardware="tpu-v6e"),
        asked(hardware={"custom": custom_card()}),
        asked(engine={"id": "ideal"}),
    ):
        found = measure(strange)
        assert found.expected is not None
        assert not found.expected.is_seen
        assert width(found) > width(seen)
        assert "not_measured" in {notice.code for notice in evaluate(strange).notices}


def test_without_a_calibration_there_are_ceilings_only() -> None:
    found = measure(replace(asked(), calibration=None))
    assert found.expected is None
    assert all(estimate.mid is None for estimate in (*times(found), *rates(found)))


@pytest.mark.parametrize(
    ("sections", "limiter"),
    [
        ({"workload": {"concurrency": 1}}, Limiter.MEMORY_BANDWIDTH),
        ({"workload": {"prompt_tokens": 8000, "output_tokens": 20, "concurrency": 16}}, Limiter.COMPUTE),
        ({"model": "qwen2.5-0.5b", "workload": {"concurrency": 1}}, Limiter.OVERHEAD),
        (
            {
                "model": "llama-3.1-70b",
                "hardware": "l40s",
                "parallelism": {"tensor": 8},
                "workload": {"concurrency": 64, "prompt_tokens": 4000, "output_tokens": 50},
            },
            Limiter.INTERCONNECT,
        ),
        ({"workload": {"concurrency": 3000}}, Limiter.CAPACITY),
    ],
)
def test_the_limiter_is_what_takes_most_of_the_expected_time(sections: dict[str, Any], limiter: Limiter) -> None:
    found = evaluate(asked(**sections)).verdict
    assert found.limiter is limiter
    assert (found.state is State.DOES_NOT_FIT) is (limiter is Limiter.CAPACITY)


def test_a_target_between_ceiling_and_expectation_is_likely_to_be_missed() -> None:
    served = measure(asked()).serving
    between = (served.tpot_s.ceiling + (served.tpot_s.mid or 0.0)) / 2

    def codes(slo_tpot_s: float) -> set[str]:
        found = evaluate(asked(workload={"slo_tpot_s": slo_tpot_s})).notices
        return {notice.code for notice in found if notice.code.startswith("tpot")}

    assert codes(0.9 * served.tpot_s.ceiling) == {"tpot_out_of_reach"}
    assert codes(between) == {"tpot_missed"}
    assert codes(2 * (served.tpot_s.mid or 0.0)) == set()
