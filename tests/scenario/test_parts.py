"""A calibration in a scenario: what is refused and where, how links carry it, and who never has one."""

import json
import math
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from app.calc.measure import measure
from app.calc.time.expected.calibration import OwnCalibration, OwnFactor
from app.engine_io.launch.command import read_command
from app.engine_io.launch.variants import launch_variants
from app.features.validation.compared import scenario_of
from app.features.validation.production import production_scenario
from app.scenario.query import query_items
from app.scenario.refusal import ScenarioError
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario
from app.web.query import answer_from, scenario_from
from tests.calc.strategies import repeatable
from tests.factories import merge_patch, scenario, scenario_document, shipped_catalog
from tests.features.strategies import Document, calibrations

SIDE: Document = {"factor": 1.12, "points": 12, "low": 0.9, "high": 1.2}
WHOLE: Document = {"name": "Our H100s", "decode": SIDE, "prefill": {"factor": 0.9, "points": 8}}
REFERENCE = [("model", "llama-3.1-8b"), ("hw", "h100-sxm-80gb")]
LINK = [
    ("cal_name", "Our H100s"),
    ("cal_decode", "1.12"),
    ("cal_decode_low", "0.9"),
    ("cal_decode_high", "1.2"),
    ("cal_decode_n", "12"),
    ("cal_prefill", "0.9"),
    ("cal_prefill_n", "8"),
]
NO_NUMBERS: tuple[object, ...] = (math.nan, math.inf, -math.inf, -1, "1.1", "", True, [])
WRONG: list[tuple[Document, str, str]] = [
    ({"decode": None, "prefill": None}, "calibration", "give one"),
    ({"decode": {"high": None}}, "calibration.decode.high", "low and high, or neither"),
    ({"decode": {"low": None}}, "calibration.decode.low", "low and high, or neither"),
    ({"prefill": {"low": 0.5}}, "calibration.prefill.high", "low and high, or neither"),
    ({"decode": {"low": 1.01}}, "calibration.decode.low", "less than or equal to 1"),
    ({"decode": {"low": 0}}, "calibration.decode.low", "greater than 0"),
    ({"decode": {"low": -0.5}}, "calibration.decode.low", "greater than 0"),
    ({"decode": {"high": 0.99}}, "calibration.decode.high", "greater than or equal to 1"),
    ({"decode": {"high": 100.1}}, "calibration.decode.high", "less than or equal to 100"),
    ({"decode": {"factor": None}}, "calibration.decode.factor", "required"),
    ({"decode": {"points": None}}, "calibration.decode.points", "required"),
    ({"name": None}, "calibration.name", "required"),
    ({"name": "\u202e"}, "calibration.name", "Nothing visible"),
    ({"name": "x" * 121}, "calibration.name", "at most 120"),
    *(
        ({"decode": {key: value}}, f"calibration.decode.{key}", "")
        for key in ("factor", "low", "high", "points")
        for value in NO_NUMBERS
    ),
    ({"decode": {"points": 1.5}}, "calibration.decode.points", ""),
    ({"decode": {"spread": 2}}, "calibration.decode.spread", ""),
]


def changed(patch: Document) -> Document:
    """The whole calibration with some of it changed; null takes a key away."""
    return merge_patch(deepcopy(WHOLE), patch)


def refusals(items: list[tuple[str, str]]) -> dict[str, str]:
    with pytest.raises(ScenarioError) as caught:
        answer_from([*REFERENCE, *items], shipped_catalog())
    return {refusal.path: refusal.message for refusal in caught.value.refusals}


@pytest.mark.parametrize(("patch", "path", "message"), WRONG, ids=str)
def test_what_is_no_calibration_is_refused_where_it_stands(patch: Document, path: str, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        scenario(calibration=changed(patch))
    (error,) = caught.value.errors()
    assert ".".join(map(str, error["loc"])) == path
    assert message in error["msg"]
    with pytest.raises(ValidationError) as caught:
        Scenario.model_validate_json(json.dumps(scenario_document(calibration=changed(patch))))
    assert {".".join(map(str, error["loc"])) for error in caught.value.errors()} == {path}


def test_ends_at_their_limits_are_taken() -> None:
    for low, high in ((1, 1), (5e-324, 100)):
        found = scenario(calibration=changed({"decode": {"low": low, "high": high}})).calibration
        assert found is not None
        assert found.decode is not None
        assert (found.decode.low, found.decode.high) == (low, high)


def test_a_scenario_from_before_there_were_any_has_none() -> None:
    old = scenario().document()
    del old["calibration"]
    found = Scenario.model_validate(old)
    assert found == scenario()
    assert found.document()["calibration"] is None


def test_it_comes_written_out_and_reaches_the_calculators() -> None:
    found = resolve(scenario(calibration=WHOLE), shipped_catalog())
    assert found.scenario.document()["calibration"] == WHOLE | {
        "prefill": {"factor": 0.9, "points": 8, "low": None, "high": None}
    }
    expected = OwnCalibration("Our H100s", OwnFactor(1.12, 12, 0.9, 1.2), OwnFactor(0.9, 8))
    assert found.deployment.own_calibration == expected
    assert resolve(scenario(), shipped_catalog()).deployment.own_calibration is None


def test_a_link_carries_it_by_value() -> None:
    asked = scenario(calibration=WHOLE)
    assert sorted(item for item in query_items(asked) if item[0].startswith("cal_")) == sorted(LINK)
    assert scenario_from([*REFERENCE, *LINK]) == asked
    assert not [name for name, _ in query_items(scenario()) if name.startswith("cal_")]


@repeatable
@given(calibrations())
def test_any_calibration_comes_back_from_a_link_and_from_its_document(calibration: Document) -> None:
    asked = scenario(calibration=calibration)
    assert scenario_from(query_items(asked)) == asked
    assert Scenario.model_validate_json(json.dumps(asked.document(), allow_nan=False)) == asked


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([("cal_decode", "1.1"), ("cal_decode_n", "3")], {"calibration.name": "needed"}),
        ([("cal_name", "x")], {"calibration": "give one"}),
        ([("cal_name", "x"), ("cal_decode", "1.1")], {"calibration.decode.points": "needed"}),
        ([("cal_name", "x"), ("cal_decode_n", "3")], {"calibration.decode.factor": "needed"}),
        ([*LINK, ("cal_prefill_low", "0.5")], {"calibration.prefill.high": "low and high, or neither"}),
        ([*LINK[:2], *LINK[3:]], {"calibration.decode.low": "low and high, or neither"}),
        ([*LINK[:2], ("cal_decode_low", "x"), *LINK[3:]], {"calibration.decode.low": "must be a number"}),
        ([*LINK[:3], ("cal_decode_high", "0.5"), *LINK[4:]], {"calibration.decode.high": "greater than or equal to 1"}),
        ([*LINK[:4], ("cal_decode_n", "0")], {"calibration.decode.points": "greater than or equal to 1"}),
        ([*LINK[:4], ("cal_decode_n", "1.5")], {"calibration.decode.points": "whole number"}),
        ([("cal_name", " "), *LINK[1:]], {"calibration.name": "Nothing visible"}),
        ([*LINK, ("cal_name", "another")], {"calibration.name": "twice"}),
        *(
            ([LINK[0], ("cal_decode", text), *LINK[2:]], {"calibration.decode.factor": ""})
            for text in ("nan", "inf", "-inf", "-1", "0", "0.04", "20.1", "1e999", "x", "1,1", "٣", "<b>", "9" * 401)
        ),
    ],
    ids=str,
)
def test_a_link_with_a_wrong_one_is_told_at_the_path(items: list[tuple[str, str]], told: dict[str, str]) -> None:
    found = refusals(items)
    assert found.keys() == told.keys()
    for path, message in told.items():
        assert message in found[path]


def test_everything_wrong_with_it_is_told_at_once() -> None:
    changes = {"cal_decode": "x", "cal_decode_high": "0.5", "cal_prefill_n": "0"}
    found = refusals(list((dict(LINK) | changes).items()))
    assert found.keys() == {"calibration.decode.factor", "calibration.decode.high", "calibration.prefill.points"}


def test_a_name_that_is_sent_empty_sets_the_rest_aside() -> None:
    assert scenario_from([*REFERENCE, ("cal_name", ""), *LINK[1:]]) == scenario()
    assert scenario_from([*REFERENCE, ("cal_name", ""), ("cal_decode", "nonsense")]) == scenario()


def test_no_measurement_is_predicted_with_one() -> None:
    rows = [row for row in shipped_catalog().measurements if not row.left_out]
    assert len(rows) > 1000
    assert all(scenario_of(row).calibration is None for row in rows)
    assert production_scenario().calibration is None


def test_a_slower_benchmark_makes_answers_slower() -> None:
    def tpot_s(calibration: Any) -> float:
        found = measure(resolve(scenario(calibration=calibration), shipped_catalog()).deployment)
        return found.serving.tpot_s.mid or 0.0

    assert tpot_s(changed({"decode": {"factor": 1.3}})) > tpot_s(None) > tpot_s(changed({"decode": {"factor": 0.8}}))


def test_a_launch_text_carries_it_in_its_comment() -> None:
    asked = resolve(scenario(calibration=changed({"name": "$(rm) & 'x' # «é»"})), shipped_catalog()).scenario
    variants = launch_variants(asked, shipped_catalog())
    assert variants
    for variant in variants:
        assert Scenario.model_validate(read_command(variant.text, shipped_catalog()).document) == asked
