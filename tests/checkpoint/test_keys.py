"""Keys are read with their types checked, and where each value came from is kept."""

import math
from typing import Any

import pytest

from app.checkpoint.keys import ConfigError, FieldReading, Keys, Ledger, Origin, quoted

WRONG = [True, "4", "", 1.5, 4.0, -1, 0, 1e30, 10**30, math.nan, math.inf, [4], {}, {"a": 1}, []]


def keys(**values: Any) -> Keys:
    return Keys(values, "text_config", Ledger())


def refused(action: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        action()
    assert str(caught.value) == f"{caught.value.key}: {caught.value.message}"
    assert caught.value.message.endswith(".")
    return caught.value


def test_a_whole_number_is_read_under_any_of_its_names() -> None:
    block = keys(n_embd=768)
    assert block.whole("hidden_size", ("hidden_size", "n_embd"), 1000) == 768
    (field,) = block.ledger.fields.values()
    assert field == FieldReading("hidden_size", 768, Origin.READ, "text_config.n_embd")


@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_what_is_no_whole_number_in_range_is_refused_by_its_path(value: Any) -> None:
    error = refused(lambda: keys(n=value).whole("n", ("n",), 1000))
    assert (error.key, error.message) == ("text_config.n", "must be a whole number from 1 to 1,000.")


@pytest.mark.parametrize("value", [{}, {"n": None}])
def test_a_missing_number_is_missed_unless_there_is_a_default(value: dict[str, Any]) -> None:
    assert refused(lambda: keys(**value).whole("n", ("n", "m"), 9)).message == "is missing."
    block = keys(**value)
    assert block.whole("n", ("n",), 9, default=3) == 3
    assert block.ledger.fields["n"].origin is Origin.DEFAULT
    assert keys(**value).maybe_whole("n", ("n",), 9) is None


def test_the_class_has_a_default_for_what_a_nested_block_leaves_out() -> None:
    block = Keys({}, "text_config", Ledger(), {"n": 7})
    assert block.whole("n", ("n",), 9) == 7
    assert block.ledger.fields["n"].origin is Origin.DEFAULT


def test_two_names_for_one_thing_must_agree() -> None:
    assert keys(n=4, m=4).whole("n", ("n", "m"), 9) == 4
    error = refused(lambda: keys(n=4, m=5).whole("n", ("n", "m"), 9))
    assert (error.key, error.message) == ("text_config.m", "contradicts n, which says 4.")


@pytest.mark.parametrize("value", [1, 0, "true", "", 1.0, [], {}, [True]], ids=repr)
def test_a_switch_is_true_or_false(value: Any) -> None:
    error = refused(lambda: keys(on=value).flag("on", ("on",), default=False))
    assert (error.key, error.message) == ("text_config.on", "must be true or false.")


def test_a_list_has_one_entry_a_layer_and_known_words_only() -> None:
    assert keys(kinds=["a", "b", "a"]).words("kinds", "kinds", ("a", "b"), 3) == ("a", "b", "a")
    for value, said in (
        (["a"], "has 1 entries for 3 layers."),
        ("aba", "must be a list."),
        (["a", "b", "c"], "has an entry that is c; known are a, b."),
        (["a", "b", None], "has an entry that is no text; known are a, b."),
        (["a", "b", ["a"]], "has an entry that is no text; known are a, b."),
    ):
        assert refused(lambda value=value: keys(kinds=value).words("kinds", "kinds", ("a", "b"), 3)).message == said
    assert keys().words("kinds", "kinds", ("a",)) is None
    assert keys(kinds=["a"]).words("kinds", "kinds", ("a",)) == ("a",)


@pytest.mark.parametrize("entry", [True, "1", 1.0, -1, 10, None, [1], math.nan], ids=repr)
def test_a_list_of_numbers_has_whole_numbers_only(entry: Any) -> None:
    assert keys(n=[0, 9]).wholes("n", "n", 9) == (0, 9)
    refused(lambda: keys(n=[1, entry]).wholes("n", "n", 9))


def test_a_list_is_told_in_short() -> None:
    block = keys(kinds=["a", "b", "a", "a", "b"], pair=["a", "a"])
    block.words("kinds", "kinds", ("a", "b"))
    assert block.ledger.fields["kinds"].value == "3 × a, 2 × b"
    block.words("pair", "pair", ("a", "b"))
    assert block.ledger.fields["pair"].value == "a, a"
    long = keys(n=list(range(9)))
    long.wholes("n", "n", 9)
    assert str(long.ledger.fields["n"].value).endswith("…")


def test_a_very_long_list_is_refused_before_it_is_looked_at() -> None:
    assert "10,001 entries" in refused(lambda: keys(n=[1] * 10_001).wholes("n", "n", 9)).message


@pytest.mark.parametrize("value", ["", 5, True, ["a"], "x" * 10_001], ids=lambda value: repr(value)[:20])
def test_a_word_is_a_short_text(value: Any) -> None:
    assert refused(lambda: keys(kind=value).word("kind", ("kind",))).message == "must be a short text."


def test_a_word_may_have_to_be_one_of_a_few() -> None:
    assert keys(kind="a").word("kind", ("kind",), ("a", "b")) == "a"
    assert keys().word("kind", ("kind",), ("a",)) is None
    message = refused(lambda: keys(kind="c\n").word("kind", ("kind",), ("a", "b"))).message
    assert message == "is c?, which is not computed; known are a, b."


@pytest.mark.parametrize("value", [True, "1", -1.0, math.nan, math.inf, 1e30, [1.0]], ids=repr)
def test_a_number_is_finite_and_in_range(value: Any) -> None:
    assert keys(x=2.625).number("x", "x") == 2.625
    assert keys().number("x", "x", default=4.0) == 4.0
    refused(lambda: keys(x=value).number("x", "x"))


@pytest.mark.parametrize("value", [[], "a", 5, True], ids=repr)
def test_a_block_is_an_object(value: Any) -> None:
    inside = keys(block={"n": 4}).inside("block")
    assert inside is not None
    assert inside.path("n") == "text_config.block.n"
    assert keys().inside("block") is None
    assert refused(lambda: keys(block=value).inside("block")).message == "must be an object."


def test_what_is_sent_is_sent_back_in_short_and_printable() -> None:
    assert quoted("a\x00\x1b[31m\nb") == "a??[31m?b"
    assert len(quoted("x" * 1_000_000)) == 61
