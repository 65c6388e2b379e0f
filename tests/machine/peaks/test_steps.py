"""The steps of a plan: their order, their shares of the time, and what is left out and why."""

import pytest

from app.calc.dtypes import Dtype
from app.calc.quantity import GIB, MIB
from app.machine.peaks.outcome import Fault, MeasureError, Outcome, Progress, Skipped, SkipReason, Stream
from app.machine.peaks.plan import Plan
from app.machine.peaks.steps import WORKSPACE_BYTES, NotOfferedError, OutOfCardMemoryError, SeenCard, Steps
from tests.machine.peaks.scripted_kernels import Script

PLAN = Plan(seconds=60, dtypes=(Dtype.BF16, Dtype.FP8), sizes=(16384, 4096))


def outcome_of(script: Script, plan: Plan = PLAN) -> tuple[Outcome, list[Progress]]:
    told: list[Progress] = []
    return Steps(script, plan, told.append, script.clock).outcome(), told


def skipped_of(script: Script, plan: Plan = PLAN) -> set[Skipped]:
    return set(outcome_of(script, plan)[0].skipped)


def test_every_step_is_told_and_measured_from_small_to_large() -> None:
    script = Script()
    outcome, told = outcome_of(script)
    assert [(step.step, step.done) for step in told] == [
        ("copy", 0),
        ("triad", 1),
        ("bf16 4096", 2),
        ("bf16 16384", 3),
        ("fp8 4096", 4),
        ("fp8 16384", 5),
    ]
    assert {step.of for step in told} == {6}
    assert [rate.stream for rate in outcome.streams] == [Stream.COPY, Stream.TRIAD]
    assert [rate.array_bytes for rate in outcome.streams] == [GIB, GIB]
    assert [(rate.dtype, rate.size) for rate in outcome.products] == [
        (Dtype.BF16, 4096),
        (Dtype.BF16, 16384),
        (Dtype.FP8, 4096),
        (Dtype.FP8, 16384),
    ]
    assert outcome.skipped == ()
    assert (outcome.card_name, outcome.memory_total_bytes) == ("a card", 80 * GIB)
    assert script.limit_bytes == 8 * GIB + WORKSPACE_BYTES
    assert script.released == 1 + 4


def test_what_one_step_leaves_of_its_time_the_others_share() -> None:
    slow = Script(lambda kind: 0.3 if kind == "fp8 16384" else 1e-3)
    outcome, _ = outcome_of(slow)
    # The five steps before took 0.15 s each; 59 s are left, two thirds of which are for what is timed.
    assert outcome.products[-1].timing.iterations == 100
    evenly = Script(lambda _: 0.3)
    outcome, _ = outcome_of(evenly)
    assert {rate.timing.iterations for rate in outcome.products} <= {22, 23}
    assert evenly.now_s <= 60


def test_what_is_not_offered_is_so_at_every_size() -> None:
    script = Script(lambda kind: NotOfferedError() if kind.startswith("fp8") else 1e-3)
    outcome, told = outcome_of(script)
    assert outcome.skipped == (Skipped(Dtype.FP8, None, SkipReason.NOT_OFFERED),)
    assert "fp8 16384" not in {step.step for step in told}


def test_what_is_too_slow_is_so_at_the_larger_sizes_too() -> None:
    script = Script(lambda kind: 9.0 if kind.startswith("bf16") else 1e-3)
    assert skipped_of(script) == {Skipped(Dtype.BF16, 4096, SkipReason.TOO_SLOW)}
    assert "bf16 16384" not in script.passes


def test_what_does_not_fit_is_left_out_and_the_rest_measured() -> None:
    small = Script(seen=SeenCard("small", 8 * GIB, 8 * GIB, 32 * MIB))
    assert skipped_of(small) == {Skipped(Dtype.BF16, 16384, SkipReason.NO_ROOM)}
    full = Script(lambda kind: OutOfCardMemoryError() if kind in ("copy", "bf16 16384") else 1e-3)
    assert skipped_of(full) == {
        Skipped(Stream.COPY, None, SkipReason.OUT_OF_MEMORY),
        Skipped(Stream.TRIAD, None, SkipReason.OUT_OF_MEMORY),
        Skipped(Dtype.BF16, 16384, SkipReason.OUT_OF_MEMORY),
    }


def test_a_stream_that_would_lie_in_the_cache_is_no_measure_of_memory() -> None:
    cached = Script(seen=SeenCard("a large cache", 4 * GIB, 4 * GIB, 96 * MIB))
    assert {skipped.reason for skipped in skipped_of(cached) if isinstance(skipped.kind, Stream)} == {
        SkipReason.NO_ROOM
    }
    assert "copy" not in cached.passes


def test_times_that_cannot_be_are_left_out() -> None:
    script = Script(lambda kind: 0.0 if kind == "triad" else 1e-3)
    assert skipped_of(script) == {Skipped(Stream.TRIAD, None, SkipReason.BAD_CLOCK)}


def test_nothing_at_all_is_a_failure_with_its_reasons() -> None:
    tiny = SeenCard("tiny", 64 * MIB, 64 * MIB, 32 * MIB)
    with pytest.raises(MeasureError, match="too small") as caught:
        outcome_of(Script(lambda _: NotOfferedError(), seen=tiny))
    assert caught.value.fault is Fault.NOTHING_MEASURED


@pytest.mark.parametrize(
    ("held", "most", "refused"),
    [
        (0, 0.1, False),
        (8 * GIB, 0.1, False),  # a tenth, and a context of one's own
        (10 * GIB, 0.1, True),
        (79 * GIB, 0.1, True),
        (79 * GIB, None, False),  # of a machine's own memory
    ],
)
def test_company_on_the_card_is_refused(held: int, most: float | None, refused: bool) -> None:
    script = Script(seen=SeenCard("shared", 80 * GIB, 80 * GIB - held, MIB))
    plan = Plan(most_held_fraction=most, dtypes=(Dtype.BF16,), sizes=(256,))
    if refused:
        with pytest.raises(MeasureError, match="% of its memory") as caught:
            outcome_of(script, plan)
        assert caught.value.fault is Fault.CARD_IN_USE
        assert script.passes == {}
    else:
        assert outcome_of(script, plan)[0].products
