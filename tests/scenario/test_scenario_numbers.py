"""Every number of the Scenario as its field declares it: what is refused, the ends of its range, strictness in JSON."""

import json
import math
from typing import Any

import pytest
from pydantic import ValidationError

from app.scenario.query import BY_NAME, FIELDS, QueryField
from app.scenario.scenario import Scenario
from tests.scenario.test_scenario import document_with, places, value_at

# The two ends of an interval go together: `tests.scenario.test_parts` has them.
OTHERS = ("v", "cal_decode_low", "cal_decode_high", "cal_prefill_low", "cal_prefill_high")
NUMBERS = [field for field in FIELDS if field.schema["type"] in ("integer", "number") and field.name not in OTHERS]
NEEDED = ("draft_tokens", "hw_mem", "hw_bw", "cal_decode", "cal_decode_n", "cal_prefill", "cal_prefill_n")
numeric = pytest.mark.parametrize("field", NUMBERS, ids=lambda field: field.path)


def takes_null(field: QueryField) -> bool:
    """Whether the form has a null there; a rate of a custom card has none, nor has a number that is needed."""
    rate = field.path.startswith("hardware.custom.dense_tflops.")
    return field.empty_is_null or not (rate or field.name in NEEDED or "default" in field.schema)


def least_of(field: QueryField) -> float | None:
    """The least that is allowed; None: it is open, above zero."""
    return field.schema.get("minimum")


@numeric
def test_every_number_refuses_what_is_no_number_in_its_range(field: QueryField) -> None:
    path, whole, least, most = field.path, field.schema["type"] == "integer", least_of(field), field.schema["maximum"]
    null = takes_null(field)
    wrong: list[Any] = [math.nan, math.inf, -math.inf, 1e400, 10**400, -(10**400), -1, -0.5, 1e300, most * 1.01 + 1]
    wrong += ["1", "", "nan", True, False, [], [1], {}, {"value": 1}]
    wrong += [] if null else [None]
    wrong += [1.5, 2.0] if whole else []
    wrong += [0, 0.0, -0.0] if least is None or least > 0 else []
    for value in wrong:
        assert places(document_with(path, value)) == {path}, value


@numeric
def test_every_number_takes_the_ends_of_its_range(field: QueryField) -> None:
    path, whole, least, most = field.path, field.schema["type"] == "integer", least_of(field), field.schema["maximum"]
    null = takes_null(field)
    for end in (1e-300 if least is None else least, most):
        value = int(end) if whole else float(end)
        found = value_at(Scenario.model_validate(document_with(path, value)), path)
        assert found == value
        assert type(found) is (int if whole else float)
    if null:
        assert value_at(Scenario.model_validate(document_with(path, None)), path) is None


@numeric
@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e400", "-1", '"1"', "true", "[]"])
def test_every_number_is_as_strict_in_json(field: QueryField, text: str) -> None:
    wire = json.dumps(document_with(field.path, "HERE")).replace('"HERE"', text)
    with pytest.raises(ValidationError):
        Scenario.model_validate_json(wire)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("count", 1, 10**6),
        ("tp", 1, 1024),
        ("util", 0.01, 1),
        ("seen", 1, 1e15),
        ("prompt", 1, 10**8),
        ("batch", 1, 10**6),
        ("hit", 0, 1),
        ("ttft", None, 1e6),
        ("draft_tokens", 1, 64),
        ("accept_len", 1, 65),
        ("pd_x", 1, 10**5),
        ("cal_decode", 0.05, 20),
        ("hw_bf16", 1e-6, 1e9),
        ("hw_mib", 1, 10**9),
    ],
)
def test_ranges_are_these(name: str, low: float | None, high: float) -> None:
    assert (least_of(BY_NAME[name]), BY_NAME[name].schema["maximum"]) == (low, high)


def test_every_field_that_is_a_number_has_a_range() -> None:
    assert len(NUMBERS) == 56
    for field in NUMBERS:
        assert "maximum" in field.schema, field.path
        assert "minimum" in field.schema or field.schema["exclusiveMinimum"] == 0, field.path
