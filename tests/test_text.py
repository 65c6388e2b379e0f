"""Text that people typed: cleaned to something that can be stored, shown and cleaned again."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.text import clean_notes, clean_text

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
