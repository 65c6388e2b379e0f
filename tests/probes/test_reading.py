import json
import math
from datetime import UTC, datetime

import pytest

from app.probes.card import CardReadings, ProbeSnapshot
from app.probes.plausible import TEXT_LIMIT, at_most, text, whole
from app.probes.reading import Absence, Reading


def test_a_reading_has_exactly_one_of_value_and_absence() -> None:
    with pytest.raises(ValueError, match="not both"):
        Reading(1, "W", Absence.TIMEOUT)
    with pytest.raises(ValueError, match="not both"):
        Reading(None, "W")
    assert Reading(0, "%").document() == {"value": 0, "unit": "%", "absence": None}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_an_absence(value: float) -> None:
    reading = Reading(value, "B/s")
    assert reading.absence is Absence.IMPLAUSIBLE
    json.dumps(reading.document(), allow_nan=False)


@pytest.mark.parametrize("absence", list(Absence))
def test_every_absence_has_a_sentence_for_a_person(absence: Absence) -> None:
    document = Reading[int].missing(absence, "W").document()
    assert document["absence"] == {"code": absence.value, "message": absence.message}
    assert absence.message.endswith(".")
    assert absence.value not in absence.message or "_" not in absence.value


def test_a_missing_binding_says_how_to_install_it() -> None:
    assert "nvidia extra" in Absence.NOT_INSTALLED.message


@pytest.mark.parametrize("raw", [-1, 101, 2**32 - 1, 2**64 - 1, 1.5, "7", b"7", None])
def test_what_cannot_be_a_percentage_is_implausible(raw: object) -> None:
    assert whole(raw, "%", ceiling=100).absence is Absence.IMPLAUSIBLE


def test_zero_is_a_value_only_where_it_can_be_meant() -> None:
    assert whole(0, "%", ceiling=100, zero_is_absent=False).value == 0
    assert whole(0, "MHz", ceiling=100).absence is Absence.ZERO_READING


def test_a_part_is_not_larger_than_its_whole() -> None:
    assert at_most(Reading(11, "B"), Reading(10, "B")).absence is Absence.IMPLAUSIBLE
    assert at_most(Reading(10, "B"), Reading(10, "B")).value == 10


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("NVIDIA H200", "NVIDIA H200"),
        (b"NVIDIA H200", "NVIDIA H200"),
        (b"NVIDIA \xff\xfe H200", "NVIDIA \ufffd\ufffd H200"),
        ("A\x00B\x1b[31mC\r\nD", "A B [31mC D"),
        ("\u202eevil\u2066 name\u2028next\u200b", "evil name next"),
        ("\ud800lone", "lone"),
        ("x" * 500, "x" * TEXT_LIMIT),
        ("\ufdfa" * 500, "\ufdfa" * TEXT_LIMIT),
    ],
)
def test_a_text_is_cleaned_and_capped(raw: object, shown: str) -> None:
    assert text(raw).value == shown


@pytest.mark.parametrize("raw", ["", b"", " \t\u202e", 7, None])
def test_a_text_of_nothing_is_an_absence(raw: object) -> None:
    assert text(raw).absence is Absence.IMPLAUSIBLE


NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_snapshot_says_why_it_is_absent_or_stale() -> None:
    version: Reading[str] = Reading("590.44.01")
    good = ProbeSnapshot("nvidia", "ok", None, version, (), NOW)
    stale = good.aged(Absence.TIMEOUT)
    assert (stale.state, stale.stale, stale.absence, stale.taken_at) == ("ok", True, Absence.TIMEOUT, NOW)
    with pytest.raises(ValueError, match="says why"):
        ProbeSnapshot("nvidia", "absent", None, version, (), NOW)
    with pytest.raises(ValueError, match="says why"):
        ProbeSnapshot("nvidia", "ok", Absence.TIMEOUT, version, (), NOW)
    with pytest.raises(ValueError, match="aware"):
        ProbeSnapshot("nvidia", "ok", None, version, (), NOW.replace(tzinfo=None))


def test_the_document_of_an_unreadable_card_is_json_and_keeps_its_units() -> None:
    card = CardReadings.unreadable(3, "NVIDIA", Absence.GPU_LOST)
    document = json.loads(json.dumps(ProbeSnapshot("nvidia", "ok", None, Reading("1"), (card,), NOW).document()))
    assert document["taken_at"] == "2030-01-02T03:04:05+00:00"
    (shown,) = document["cards"]
    assert shown["index"] == 3
    assert shown["fault"]["code"] == "gpu_lost"
    assert shown["power_draw_w"] == {"value": None, "unit": "W", "absence": Absence.GPU_LOST.document()}
    assert "uuid" not in shown
