"""A measurement as a document, its roofs, and what is none."""

import json
from datetime import datetime
from typing import Any

import pytest

from app.calc.dtypes import Dtype
from app.machine.peaks.outcome import Stream
from app.machine.peaks.result import CardState, achieved
from tests.machine.peaks.measured import AT, product, roofs, stream
from tests.machine.peaks.workers import UUID, card


def test_the_document_has_rates_and_states_and_no_key_of_the_card() -> None:
    run = roofs()
    told = json.loads(json.dumps(run.document(), allow_nan=False))
    assert told["measured_at"] == "2026-11-30T12:00:00+00:00"
    assert told["streams"][1] == {
        "stream": "triad",
        "array_bytes": 2**30,
        "moved_bytes": 3 * 2**30,
        "iterations": 100,
        "best_bytes_per_s": pytest.approx(2.8e12),
        "median_bytes_per_s": pytest.approx(2.8e12 / 1.1),
    }
    assert told["products"][1]["best_flops_per_s"] == pytest.approx(7.9e14)
    assert told["skipped"][0]["code"] == "not_offered"
    assert told["before"]["sm_clock_mhz"] == {"value": 1980, "unit": "MHz", "absence": None}
    assert told["before"]["throttle_reasons"]["value"] == ["gpu_idle"]
    assert told["before"]["power_limit_w"]["absence"]["code"] == "not_supported"
    assert told["after"]["sm_clock_mhz"]["absence"]["code"] == "timeout"
    assert UUID not in json.dumps(told)
    assert UUID not in repr(run)


def test_the_roofs_are_the_best_of_each_kind() -> None:
    found = achieved([roofs(), roofs(streams=(stream(3.0e12),), products=(product(1.4e15, Dtype.FP8),))])
    assert found.bandwidth_bytes_per_s == pytest.approx(3.0e12)
    assert dict(found.flops_per_s) == {Dtype.BF16: pytest.approx(7.9e14), Dtype.FP8: pytest.approx(1.4e15)}
    assert achieved([roofs(streams=())]).bandwidth_bytes_per_s is None
    assert achieved([]).flops_per_s == {}


def test_what_is_left_without_some_kinds() -> None:
    run = roofs()
    assert run.kinds == {Stream.COPY, Stream.TRIAD, Dtype.BF16}
    left = run.without(frozenset({Stream.COPY, Dtype.BF16, Dtype.FP8}))
    assert left is not None
    assert left.kinds == {Stream.TRIAD}
    assert run.without(run.kinds) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"measured_at": datetime(2026, 11, 30)},
        {"streams": (), "products": ()},
        {"memory_total_bytes": 0},
        {"memory_total_bytes": -1},
        {"memory_total_bytes": 10**30},
        {"card_name": ""},
        {"card_name": "two\nlines"},
        {"card_name": "\u202eright to left"},
        {"card_name": "x" * 1000},
        {"versions": {"torch": "\x1b[31m"}},
        {"versions": {str(number): "1" for number in range(9)}},
        {"library": ""},
    ],
    ids=lambda changed: str(changed)[:40],
)
def test_what_is_no_measurement(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"measure|card|Card|name|roof"):
        roofs(**changed)


def test_a_state_keeps_some_of_the_readings() -> None:
    state = CardState.of(card(power_draw_w=card().power_draw_w))
    assert state.power_draw_w.value == 70.0
    assert AT.utcoffset() is not None
