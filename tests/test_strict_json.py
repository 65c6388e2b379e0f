"""JSON as the standard has it, and nothing beside it."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.strict_json import MAX_DEPTH, StrictJsonError, dumps, loads

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)


@given(VALUES)
@settings(derandomize=True, deadline=None, max_examples=150)
def test_what_is_written_is_read_back(value: object) -> None:
    assert loads(dumps(value)) == value
    assert loads(dumps(value).decode()) == value
    assert loads(json.dumps(value)) == value  # every character escaped


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("NaN", "NaN is not JSON."),
        ("[Infinity]", "Infinity is not JSON."),
        ('{"a": -Infinity}', "-Infinity is not JSON."),
        ("1e400", "a number is too large for a double."),
        ("-1e999", "a number is too large for a double."),
        ('{"a": 1, "a": 1}', "an object has the same key twice."),
        ('{"a": 1, "\\u0061": 2}', "an object has the same key twice."),
        ('["\\ud800"]', "a text holds half a character (a lone surrogate)."),
        ('{"\\udc00": 1}', "a text holds half a character (a lone surrogate)."),
        ("9" * 5_000, "not valid JSON: bad encoding or an absurd number."),
        ("", "not valid JSON at line 1, column 1."),
        ("[1,\n 2 3]", "not valid JSON at line 2, column 4."),
        ("[" * 100_000, f"nested deeper than {MAX_DEPTH} levels."),
        ("[" * 21 + "]" * 21, f"nested deeper than {MAX_DEPTH} levels."),
    ],
)
def test_what_is_refused_and_why(text: str, reason: str) -> None:
    for form in (text, text.encode()):
        with pytest.raises(StrictJsonError) as refused:
            loads(form)
        assert str(refused.value) == reason


def test_depth_up_to_the_limit_is_read() -> None:
    text = "[" * (MAX_DEPTH - 1) + "1" + "]" * (MAX_DEPTH - 1)
    assert json.dumps(loads(text)) == text
    assert loads('{"a":' * 19 + "1" + "}" * 19) is not None


@pytest.mark.parametrize("body", [b'"\xff"', b'"\xc3"', b'"\xed\xa0\x80"', b'["\xed\xb0\x80"]', b'{"\xed\xa0\x80": 1}'])
def test_bytes_that_are_no_utf_8(body: bytes) -> None:
    with pytest.raises(StrictJsonError):
        loads(body)


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
def test_whatever_is_read_of_another_coding_can_be_written(coding: str) -> None:
    try:
        value = loads('{"a": "\\ud800"}'.encode(coding))
    except StrictJsonError:
        return
    dumps(value)


def test_what_would_be_no_json_is_not_written() -> None:
    for value in (math.nan, math.inf, [-math.inf], {"a": {"b": math.nan}}):
        with pytest.raises(ValueError, match="not JSON compliant"):
            dumps(value)


def test_the_reason_never_repeats_the_text() -> None:
    for text in ("secret", '{"secret": 1, "secret": 2}', '{"secret": NaN}', '"secret\\ud800"', "[secret]"):
        with pytest.raises(StrictJsonError) as refused:
            loads(text)
        assert "secret" not in str(refused.value)


def test_minus_zero_and_small_numbers_stay_what_they_are() -> None:
    assert math.copysign(1, loads("-0.0")) == -1
    assert loads("5e-324") == 5e-324
    assert loads("1e-400") == 0


def test_constants_may_be_read_as_texts_where_files_hold_them() -> None:
    text = '{"a": [0.0, Infinity, -Infinity, NaN], "b": 1}'
    assert loads(text, constants_are_text=True) == {"a": [0.0, "Infinity", "-Infinity", "NaN"], "b": 1}
    with pytest.raises(StrictJsonError):
        loads("1e999", constants_are_text=True)
