"""The numbers of the lesson: each is the evaluation's, each sum adds up, and a changed formula changes them."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.calc.memory.engines.parts import MOST_CONCURRENT
from app.calc.time.goodput import goodput
from app.features.learn.lesson import lesson
from app.features.learn.number import LiveNumber, worked
from app.scenario.document import document, number_at
from app.web.query import answer_from
from tests.factories import shipped_catalog
from tests.features.learn.cases import SCENARIOS, USUAL, told
from tests.features.workbench.charts.cases import extreme_answers

EACH = pytest.mark.parametrize("name", SCENARIOS)
WHOLE = ("kv_capacity_tokens", "kv_capacity_users")
"""Counts that are cut to whole ones, where the sum beside them is not."""
CHAPTERS = (
    "request",
    "prefill",
    "decode",
    "ridge",
    "batching",
    "cache",
    "measuring",
    "doors",
    "engines",
    "cards",
    "beliefs",
)


def numbers(name: str) -> list[LiveNumber]:
    return list(told(name).numbers())


@EACH
def test_every_chapter_is_there_and_every_number_is_finite_and_named_once(name: str) -> None:
    lesson_ = told(name)
    assert tuple(chapter.id for chapter in lesson_.chapters) == CHAPTERS
    ids = [number.id for number in lesson_.numbers()]
    assert len(ids) == len(set(ids)) > 150
    for number in lesson_.numbers():
        assert math.isfinite(number.value), number.id
        assert number.text, number.id
        assert number.source, number.id
        assert number.case == "" or number.case in lesson_.behind


@EACH
def test_a_number_read_at_a_path_is_that_of_the_document_of_its_case(name: str) -> None:
    lesson_, checked = told(name), 0
    documents = {key: document(case.answered) for key, case in lesson_.behind.items()}
    for number in lesson_.numbers():
        head = number.source.partition(".")[0]
        if head not in ("rule_of_thumb", "memory", "serving", "prefill", "decode", "goodput") or " " in number.source:
            continue
        if number.source == "decode.concurrency":  # of all replicas; the story is that of one
            continue
        assert number_at(documents[number.case], number.source) == number.value, number.id
        checked += 1
    assert checked > 60


@EACH
def test_a_number_that_is_a_term_is_the_term_of_that_working(name: str) -> None:
    lesson_, checked = told(name), 0
    for number in lesson_.numbers():
        if not number.source.startswith("term ") or "," in number.source:
            continue
        id_, symbol = number.source.removeprefix("term ").split(" ")
        explanations = lesson_.behind[number.case].evaluation.explanations
        (working,) = [explanation for explanation in explanations if explanation.id == id_]
        (term,) = [term for term in working.terms if term.symbol == symbol]
        assert term.value == number.value, number.id
        checked += 1
    assert checked > 20


@EACH
def test_every_sum_amounts_to_the_number_beside_it(name: str) -> None:
    for number in numbers(name):
        if not number.parts:
            continue
        found = worked(number.parts)
        if number.source.rpartition(".")[2] in WHOLE:
            assert number.value == math.floor(found * (1 + 1e-12)), number.id
        else:
            assert number.value == pytest.approx(found, rel=1e-9), number.id


@EACH
def test_what_is_printed_divides_by_hand(name: str) -> None:
    """With the printed digits in place of the values, each sum still gives what stands behind its sign."""
    for number in numbers(name):
        if (
            not number.parts or number.source.rpartition(".")[2] in WHOLE or number.key == "of_cache"
        ):  # never printed as a sum
            continue
        rounded = [part if isinstance(part, str) else replace(part, value=_printed(part)) for part in number.parts]
        nearness = 0.1 if "−" in number.parts else 0.012  # a difference of two near numbers has few digits left
        assert worked(rounded) == pytest.approx(number.value, rel=nearness), number.id


def _printed(number: LiveNumber) -> float:
    """The value rounded to what the page prints of it."""
    digits = sum(
        c.isdigit() for c in number.text.replace("0.000", "").replace("0.00", "").replace("0.0", "").split(" ")[0]
    )
    return float(f"{number.value:.{max(1, digits) - 1}e}") if number.value else 0.0


@pytest.mark.parametrize("name", list(extreme_answers()))
def test_nothing_is_too_small_or_too_large_to_be_told(name: str) -> None:
    for number in lesson(extreme_answers()[name], 2, shipped_catalog()).numbers():
        assert math.isfinite(number.value), number.id


def scaled(original: Callable[..., Any], factor: float) -> Callable[..., Any]:
    return lambda *given, **named: factor * original(*given, **named)


@pytest.mark.parametrize(
    ("formula", "chapter", "keys"),
    [
        ("app.calc.time.rule_of_thumb.decode_step_s", "decode", ("step", "rate", "times")),
        ("app.calc.time.rule_of_thumb.decode_step_s", "batching", ("step", "rate", "past_step")),
        ("app.calc.time.rule_of_thumb.prefill_flops", "prefill", ("flops", "arithmetic", "intensity")),
        ("app.calc.time.rule_of_thumb.ridge_flops_per_byte", "ridge", ("ridge", "short", "over")),
        (
            "app.calc.time.rule_of_thumb.kv_bytes_per_sequence",
            "cache",
            ("token", "room", "room_users", "kv_step", "kv_rate"),
        ),
        ("app.calc.time.rule_of_thumb.total_latency_s", "request", ("total", "share")),
        ("app.features.learn.phases.total_latency_s", "request", ("promised",)),
        ("app.features.learn.hardware.decode_step_s", "beliefs", ("twice_arithmetic", "twice_bandwidth")),
        ("app.calc.optimize.paging.used_share", "doors", ("paging_0_before", "paging_0_after")),
        ("app.calc.time.serving.total_latency_s", "measuring", ("whole_ceiling",)),
    ],
)
def test_a_changed_formula_changes_the_lesson(
    monkeypatch: pytest.MonkeyPatch, formula: str, chapter: str, keys: tuple[str, ...]
) -> None:
    before = told("usual")[chapter].numbers
    module, _, name = formula.rpartition(".")
    original = getattr(__import__(module, fromlist=[name]), name)
    monkeypatch.setattr(formula, scaled(original, 0.5))
    after = fresh()[chapter].numbers
    for key in keys:
        assert after[key].value != before[key].value, key
        assert after[key].text != before[key].text, key


def test_a_changed_goodput_changes_the_lesson(monkeypatch: pytest.MonkeyPatch) -> None:
    def halved(*given: Any) -> Any:
        found = goodput(*given)
        return found and replace(found, rate_per_s=found.rate_per_s / 2)

    monkeypatch.setattr("app.calc.evaluate.goodput", halved)
    good = told("usual")["measuring"].numbers["good"]
    assert fresh()["measuring"].numbers["good"].value == pytest.approx(good.value / 2)


def fresh() -> Any:
    catalog = shipped_catalog()
    return lesson(answer_from(USUAL.items(), catalog), 4096, catalog)


def test_the_reader_of_one_replica_is_told_of_one() -> None:
    assert told("replicas")["batching"].numbers["users"].value == 32
    assert told("replicas")["measuring"].numbers["users"].value == 64


def test_a_single_user_sees_a_crowd_as_an_example() -> None:
    chapter = told("one user")["batching"]
    assert chapter.says["is_sample"]
    assert chapter.numbers["users"].value == 64
    assert told("one user")["measuring"].numbers["users"].value == 1


@pytest.mark.parametrize("chat", [2, 4096, 131_072, 10**8])
def test_a_conversation_may_have_any_length(chat: int) -> None:
    chapter = told("usual", chat)["cache"]
    assert chapter.numbers["length"].value == chat
    assert chapter.numbers["chat_bytes"].value == chat * 131_072
    assert chapter.says["beyond_limit"] == (chat > 131_072)


@EACH
def test_the_batch_beyond_the_ridge_is_beyond_it_and_beyond_those_who_are_there(name: str) -> None:
    numbers_ = told(name)["batching"].numbers
    past = numbers_["past_users"].value
    if past == MOST_CONCURRENT:  # a card with next to no bandwidth has its ridge beyond what may be asked for
        return
    assert past > numbers_["ridge_users"].value
    assert past > numbers_["users"].value
    assert math.log2(past).is_integer()
