"""The rows of results: the evaluation's own numbers, like beside like, and fair words."""

import pytest

from app.calc.output import Better
from app.features.compare.results import Level, Row, Value, Verdict, result_rows
from app.scenario.document import document, number_at
from tests.factories import answer_to, custom_card
from tests.features.workbench.charts.cases import answers, extreme_answers

REFERENCE = answer_to()
WIDER = answer_to(hardware="h200-sxm")
UNFIT = answer_to("llama-3.1-70b", "rtx-4090")
BARE = answer_to(hardware={"custom": custom_card()})


def row(*values: float | None, better: Better = Better.HIGHER, fitting: tuple[bool, ...] | None = None) -> Row:
    made = tuple(Value(value) for value in values)
    return Row("x", "X", "all", "s", Level.CEILING, better, made, fitting or tuple(True for _ in values))


def rows_of(*compared: object) -> dict[tuple[str, Level], Row]:
    found = result_rows([one.evaluation for one in compared])  # type: ignore[attr-defined]
    assert len({(one.id, one.level) for one in found}) == len(found)
    return {(one.id, one.level): one for one in found}


@pytest.mark.parametrize(
    ("id_", "path"),
    [
        ("ttft_s", "serving.ttft_s"),
        ("tpot_s", "serving.tpot_s"),
        ("total_latency_s", "serving.total_latency_s"),
        ("output_tokens_per_s", "serving.output_tokens_per_s"),
        ("output_tokens_per_s_per_user", "serving.output_tokens_per_s_per_user"),
    ],
)
def test_rows_are_the_numbers_of_the_documents(id_: str, path: str) -> None:
    found = rows_of(REFERENCE, WIDER)
    for place, answered in enumerate((REFERENCE, WIDER)):
        known = number_at(document(answered), path)
        assert found[id_, Level.CEILING].values[place] == Value(known["ceiling"])
        assert found[id_, Level.EXPECTED].values[place] == Value(known["mid"], known["low"], known["high"])


def test_cost_and_energy_agree_with_the_evaluation_and_their_best_case_is_the_ceiling() -> None:
    found = rows_of(REFERENCE, WIDER)
    for place, answered in enumerate((REFERENCE, WIDER)):
        cost = answered.evaluation.measures.cost
        assert cost is not None
        for id_ in ("usd_per_million_output_tokens", "joules_per_output_token"):
            expected, best = (found[id_, level].values[place] for level in (Level.EXPECTED, Level.CEILING))
            assert expected.mid == pytest.approx(getattr(cost, id_))
            assert best.mid is not None
            assert expected.low is not None
            assert expected.mid is not None
            assert expected.high is not None
            assert best.mid <= expected.low <= expected.mid <= expected.high


def test_what_a_gpu_yields_is_the_whole_divided_by_all_of_them() -> None:
    many = answer_to("llama-3.1-70b", parallelism={"tensor": 4}, hardware={"id": "h200-sxm", "count": 8})
    found = rows_of(many)
    whole = found["output_tokens_per_s", Level.EXPECTED].values[0].mid
    assert whole is not None
    assert found["output_tokens_per_s_per_gpu", Level.EXPECTED].values[0].mid == pytest.approx(whole / 8)
    assert found["gpus", Level.INPUT].values[0].mid == 8


def test_a_row_that_no_plan_has_is_left_out_and_one_that_some_have_is_kept() -> None:
    assert ("usd_per_hour", Level.INPUT) not in rows_of(BARE)
    kept = rows_of(REFERENCE, BARE)["usd_per_hour", Level.INPUT]
    assert kept.values[1].mid is None
    assert kept.verdict(1, 0) is Verdict.UNKNOWN
    assert kept.best == ()


def test_what_does_not_fit_is_never_the_best_nor_better_in_a_time() -> None:
    for (_, level), one in rows_of(UNFIT, answer_to("llama-3.1-70b", "h200-sxm")).items():
        assert 0 not in one.best
        if level in (Level.EXPECTED, Level.CEILING):
            assert one.verdict(1, 0) not in (Verdict.BETTER, Verdict.WORSE)
    room = rows_of(UNFIT, REFERENCE)["max_concurrency", Level.CAPACITY]
    assert (room.ratio(1, 0), room.verdict(1, 0), room.best) == (None, Verdict.BETTER, ())


def test_better_and_worse_follow_the_direction() -> None:
    assert row(2.0, 1.0).verdict(1, 0) is Verdict.WORSE
    assert row(2.0, 1.0, better=Better.LOWER).verdict(1, 0) is Verdict.BETTER
    assert row(2.0, 1.0, better=Better.NEITHER).verdict(1, 0) is Verdict.DIFFERENT
    assert row(2.0, 2.0 * (1 + 1e-12)).verdict(1, 0) is Verdict.SAME
    assert row(2.0, 1.0).verdict(0, 0) is Verdict.BASELINE


def test_the_best_are_all_that_share_the_best_value() -> None:
    assert row(1.0, 3.0, 3.0).best == (1, 2)
    assert row(1.0, 3.0, 3.0, better=Better.LOWER).best == (0,)
    assert row(1.0, 3.0, fitting=(True, False)).best == ()
    assert row(2.0, 2.0).best == row(2.0, 1.0, better=Better.NEITHER).best == row(2.0).best == ()
    assert row(None, None).is_equal
    assert not row(None, 1.0).is_equal


@pytest.mark.parametrize("name", [*extreme_answers(), "reference", "users do not fit"])
def test_any_plan_stands_beside_any_other(name: str) -> None:
    for one in result_rows([answers()[name].evaluation, UNFIT.evaluation]):
        assert len(one.values) == 2
        assert one.verdict(1, 0) is not Verdict.BASELINE
        assert one.ratio(0, 0) in (None, 1.0)
