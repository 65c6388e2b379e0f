"""JSON as the standard has it, and nothing beside it.

Text that people typed: cleaned to something that can be stored, shown and cleaned again.
"""

import csv
import json
import math
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.checkpoint.text import MAX_DEPTH, StrictJsonError, clean_notes, clean_text, csv_text, dumps, loads


def read(text: str) -> list[list[str]]:
    return list(csv.reader(text.split("\n")[:-1]))


def test_rows_are_lines_and_numbers_stay_numbers() -> None:
    assert csv_text([["a", "b"], [1, -2.5], [None, 'say "x", y']]) == 'a,b\n1,-2.5\n,"say ""x"", y"\n'
    assert csv_text([]) == ""


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t"], ids=["equals", "plus", "minus", "at", "tab"])
def test_text_that_looks_like_a_formula_gets_an_apostrophe(sign: str) -> None:
    assert read(csv_text([[f"{sign}1", f"1{sign}"]])) == [[f"'{sign}1", f"1{sign}"]]


def test_cell_stays_in_its_line() -> None:
    assert read(csv_text([["\r=1", "a\rb"]])) == [[" =1", "a b"]]
    assert list(csv.reader([csv_text([["a\nb"]])])) == [["a\nb"]]


@given(st.lists(st.lists(st.text("=+-@\t\r\"', ax1", max_size=4), min_size=2, max_size=4), max_size=4))
def test_no_cell_begins_as_a_formula_and_none_is_lost(rows: list[list[str]]) -> None:
    found = read(csv_text(rows))
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for row in found for cell in row)
    assert [[cell.removeprefix("'") for cell in row] for row in found] == [
        [cell.replace("\r", " ").removeprefix("'") for cell in row] for row in rows
    ]


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


repeatable = settings(deadline=None, derandomize=True, max_examples=200)
REFUSED = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
JOINERS = {"\u200c", "\u200d"}


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("My card", "My card"),
        ("  My card  ", "My card"),
        ("H100 × 8 (größer) 日本語 العربية", "H100 × 8 (größer) 日本語 العربية"),
        ("\u202eevil\u202c", "evil"),  # right-to-left override
        ("a\u2066b\u2069c", "abc"),  # isolates
        ("a\u200eb\u200fc\u061cd", "abcd"),  # direction marks
        ("a\x00b\x1bc\x7fd\x9be", "abcde"),  # NUL, escape, delete, C1
        ("a\r\nb", "ab"),
        ("a\u2028b\u2029c", "abc"),  # line and paragraph separators
        ("a\ufeffb\u200bc\u00add", "abcd"),  # byte order mark, zero-width space, soft hyphen
        ("a\ue000b\U000f0000c", "abc"),  # private use
        ("a\ud800b", "ab"),  # a lone surrogate
        ("a\u0378b", "ab"),  # not assigned
        ("e\u0301", "é"),  # normal form C
        ("می\u200cخواهم", "می\u200cخواهم"),  # a joiner inside a word stays
        ("👩\u200d💻", "👩\u200d💻"),
        ("<b>&amp;'\"", "<b>&amp;'\""),  # escaping is the template's work
    ],
)
def test_what_is_kept_of_what_was_typed(typed: str, kept: str) -> None:
    assert clean_text(typed) == kept


@pytest.mark.parametrize("typed", ["", " ", "\u202e", "\u200d\u200c", "\x00\x01", " \u200d ", "\ud800", "\n\t"])
def test_nothing_visible_is_refused(typed: str) -> None:
    with pytest.raises(ValueError, match=r"^Nothing visible is left of this text\.$"):
        clean_text(typed)


def test_what_hides_between_a_letter_and_its_mark_does_not_break_normal_form() -> None:
    for hidden in ("\x01", "\u202e", "\u200b"):
        cleaned = clean_text(f"e{hidden}\u0301")
        assert cleaned == unicodedata.normalize("NFC", cleaned) == "é"


@repeatable
@given(st.text(max_size=30))
def test_what_is_left_holds_nothing_that_is_refused_and_no_space_at_its_ends(typed: str) -> None:
    try:
        cleaned = clean_text(typed)
    except ValueError:
        assert not any(unicodedata.category(character)[0] in "LNPS" for character in typed)
        return
    assert cleaned == cleaned.strip()
    assert not any(unicodedata.category(c) in REFUSED for c in cleaned if c not in JOINERS)
    cleaned.encode()


@repeatable
@given(st.text(st.characters(codec="utf-8", exclude_categories=("Mn", "Mc", "C")), max_size=30))
def test_cleaning_twice_changes_nothing(typed: str) -> None:
    try:
        cleaned = clean_text(typed)
    except ValueError:
        return
    assert clean_text(cleaned) == cleaned


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("", ""),
        ("\u202e", ""),
        ("one\r\ntwo\n\nthree", "one\ntwo\n\nthree"),
        ("\n one \n", "one"),
        ("a\u2028b\x00c", "abc"),
        ("a\rb", "ab"),
    ],
)
def test_notes_keep_their_lines_and_may_be_empty(typed: str, kept: str) -> None:
    assert clean_notes(typed) == kept
