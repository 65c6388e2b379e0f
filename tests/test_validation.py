"""Predicted against measured: the statistics reworked from the rows by hand, and each row by the way of an answer."""

import math
import statistics
from dataclasses import replace

import pytest

from app.catalog.calibration import load_cross_validated
from app.catalog.measurements import Metric
from app.features.validation.compared import (
    METRICS,
    RATES,
    Compared,
    Inside,
    estimate_of,
    family_words,
    regime_words,
    scenario_of,
    value_words,
)
from app.features.validation.errors import FEWEST, SLICES, Group, errors_of, left_out_counts, slice_of, slices, worst
from app.scenario.answer import answer
from tests.factories import compared_rows, shipped_catalog

ROWS = compared_rows()


def first(metric: Metric) -> Compared:
    return next(row for row in ROWS if row.measurement.metric is metric)


def altered(row: Compared, **changes: object) -> Compared:
    """A row with other figures; `measured` and `speculation` are those of its measurement."""
    of_row = {name: value for name, value in changes.items() if name not in ("measured", "speculation", "left_out")}
    of_measurement = {"value" if n == "measured" else n: v for n, v in changes.items() if n not in of_row}
    measurement = replace(row.measurement, **of_measurement)  # type: ignore[arg-type]
    return replace(row, measurement=measurement, **of_row)  # type: ignore[arg-type]


def test_every_measurement_that_a_scenario_can_say_is_there_once_and_the_worst_comes_first() -> None:
    catalog = shipped_catalog()
    expected = [row.id for row in catalog.measurements if row.is_compared]
    assert sorted(row.measurement.id for row in ROWS) == sorted(expected)
    assert set(load_cross_validated()) == set(expected)
    factors = [row.factor for row in ROWS]
    assert factors == sorted(factors, reverse=True)
    assert factors[-1] >= 1


@pytest.mark.parametrize("metric", Metric)
def test_a_row_says_what_an_answer_to_its_scenario_says(metric: Metric) -> None:
    for row in [row for row in ROWS if row.measurement.metric is metric][::60]:
        measurement, blind = row.measurement, load_cross_validated()[row.measurement.id]
        told = estimate_of(measurement, answer(scenario_of(measurement), shipped_catalog()).evaluation.measures)
        assert (row.in_sample, row.held_out, row.unseen) == (told.mid, blind.held_out, blind.unseen)
        if told.low is None or told.mid is None or told.high is None:
            assert row.inside is Inside.UNCLAIMED
            continue
        low, high = blind.held_out * told.low / told.mid, blind.held_out * told.high / told.mid
        assert (row.low, row.high) == pytest.approx((low, high))
        assert (row.inside is Inside.YES) == (low <= measurement.value <= high)


def test_a_slow_time_and_a_slow_rate_are_both_too_slow() -> None:
    time, rate = first(Metric.TPOT), first(Metric.OUTPUT)
    assert altered(time, measured=1.0, held_out=2.0).speed == 0.5
    assert altered(rate, measured=2.0, held_out=1.0).speed == 0.5
    assert altered(rate, measured=2.0, held_out=1.0).factor == altered(time, measured=1.0, held_out=2.0).factor == 2


@pytest.mark.parametrize(("low", "high", "inside"), [(1, 3, "inside"), (2, 2, "inside"), (3, 4, "outside")])
def test_the_ends_of_an_interval_are_inside(low: float, high: float, inside: str) -> None:
    assert altered(ROWS[0], measured=2.0, low=low, high=high).inside == inside
    assert altered(ROWS[0], measured=2.0, low=None, high=high).inside is Inside.UNCLAIMED


def test_errors_of_four_pairs_by_hand() -> None:
    found = errors_of([(1.1, 1.0), (1.15, 1.0), (0.5, 1.0), (6.0, 2.0)])  # off by 0.1, 0.15, 0.5, 2
    assert found is not None
    assert found.measurements == 4
    assert found.mean == pytest.approx(0.6875)
    assert found.median == pytest.approx(0.325)
    assert found.ninth_decile == pytest.approx(0.5 + 0.7 * 1.5)
    assert found.within_20_percent == 0.5
    assert found.within_factor_2 == 0.5  # half of it is a factor of 2 off already, and 6 of 2 is 3
    assert errors_of([]) is None


@pytest.mark.parametrize("by", SLICES)
def test_the_slices_are_reworked_from_the_rows(by: str) -> None:
    """Mean, median and coverage of each slice, in plain Python and without the module's arrays."""
    catalog = shipped_catalog()
    values = {row.id: row.value for row in catalog.measurements}
    blind = load_cross_validated()
    scored = [row for row in ROWS if not row.measurement.speculation]
    found = slices(ROWS, by)
    assert sum(one.measurements for one in found) == len(scored)
    assert [one.measurements for one in found] == sorted((one.measurements for one in found), reverse=True)
    for one in found:
        own = [row for row in scored if SLICES[by][1](row)[0] == one.key]
        errors = [abs(blind[r.measurement.id].held_out / values[r.measurement.id] - 1) for r in own]
        assert one.cross_validated is not None
        assert one.cross_validated.mean == pytest.approx(math.fsum(errors) / len(errors))
        assert one.cross_validated.median == pytest.approx(statistics.median(errors))
        assert one.cross_validated.within_20_percent == pytest.approx(sum(error < 0.2 for error in errors) / len(own))
        near = [0.5 < r.held_out / r.measured < 2 for r in own]
        assert one.cross_validated.within_factor_2 == pytest.approx(sum(near) / len(own))
        assert sum(error > one.cross_validated.ninth_decile for error in errors) == pytest.approx(len(own) / 10, abs=1)
        seen = [abs(r.in_sample / r.measured - 1) for r in own if r.in_sample is not None]
        assert (one.in_sample.mean if one.in_sample else 0) == pytest.approx(math.fsum(seen) / len(seen) if seen else 0)
        claimed = [r for r in own if r.low is not None and r.high is not None]
        inside = [r for r in claimed if r.low <= r.measured <= r.high]  # type: ignore[operator]
        assert (one.coverage.inside if one.coverage else 0) == (len(inside) / len(claimed) if claimed else 0)


def test_what_may_speculate_is_shown_and_not_counted() -> None:
    unstated = [row for row in ROWS if not row.is_scored]
    assert unstated
    assert slice_of(unstated).cross_validated is None
    assert slice_of(ROWS).measurements == len(ROWS) - len(unstated)
    wild = [altered(row, held_out=1e9, speculation="unstated") for row in ROWS[:50]]
    assert slice_of([*ROWS, *wild]) == slice_of(ROWS)


def test_a_fit_that_has_seen_the_rows_flatters_itself() -> None:
    whole = slice_of(ROWS)
    assert whole.in_sample is not None
    assert whole.cross_validated is not None
    assert whole.unseen is not None
    assert whole.in_sample.median < whole.cross_validated.median < whole.unseen.median


def group_of(speeds: list[float]) -> Group:
    """The group of one engine and model, of rates that are so many times what was measured."""
    rate = first(Metric.OUTPUT)
    rows = [altered(rate, measured=1.0, held_out=speed, speculation="") for speed in speeds]
    (found,) = worst(rows, "model", 3)
    return found


@pytest.mark.parametrize(
    ("speeds", "words"),
    [
        ([0.6] * 5, "typically predicts too slow by 40 %"),
        ([1.3] * 5, "typically predicts too fast by 30 %"),
        ([3.0] * 5, "typically predicts 3 times the measured speed"),
        ([0.5, 0.7, 1.0, 1.4, 2.0], "predicts too slow about as often as too fast"),
    ],
)
def test_a_group_says_which_way_it_leans(speeds: list[float], words: str) -> None:
    group = group_of(speeds)
    assert group.direction == words
    assert group.mean_error == pytest.approx(statistics.fmean(abs(speed - 1) for speed in speeds))
    assert group.sentence.endswith(f"on average over 5 measurements; {words}.")


def test_the_worst_groups_are_large_enough_and_in_order() -> None:
    for kind in ("family", "model"):
        groups = worst(ROWS, kind, 1000)
        errors = [group.mean_error for group in groups]
        assert errors == sorted(errors, reverse=True)
        assert all(group.measurements >= FEWEST for group in groups)
        assert worst(ROWS, kind, 3) == groups[:3]
        (engine, other), top = (value for _, value in groups[0].asked), groups[0]
        own = [
            row
            for row in ROWS
            if row.is_scored and row.measurement.engine == engine and other in (row.family, row.measurement.model)
        ]
        assert len(own) == top.measurements
        assert top.mean_error == pytest.approx(statistics.fmean(abs(row.ratio - 1) for row in own))
    assert worst(ROWS[: FEWEST - 1], "model", 3) == []


def test_a_measurement_with_two_reasons_is_counted_at_each() -> None:
    assert left_out_counts(["a; b", "a", ""]) == [("a", 2), ("b", 1)]


def test_everything_has_words() -> None:
    assert set(METRICS) == set(Metric)
    assert set(Metric) - RATES == {Metric.TTFT, Metric.TPOT}
    assert regime_words("tpot many") == "output token, several at a time"
    assert regime_words("llama.cpp tpot one") == "llama.cpp: output token, one request at a time"
    assert regime_words("prefill") == "prefill"
    assert all(regime_words(row.regime) != row.regime or row.regime == "prefill" for row in ROWS)
    assert all(family_words(row.family) != row.family for row in ROWS)
    assert value_words(0.0123, Metric.TPOT) == "12.3 ms"
    assert value_words(1234, Metric.TOTAL) == "1,230 tokens/s"
