import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest

from app.machine.probes.accelerator import TEXT_LIMIT, CardReadings, at_most, share_percent, text, whole
from app.machine.probes.reading import Absence, Reading
from app.machine.probes.snapshot import ProbeSnapshot


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
    assert "extras nvidia" in Absence.NOT_INSTALLED.message
    assert "pip install" in Absence.NOT_INSTALLED.message


@pytest.mark.parametrize(
    ("raw", "shown"),
    [(0.0, 0.0), (62, 62.0), (100.0, 100.0), (100.4, 100.0), (101.0, 100.0)],
)
def test_a_share_a_little_over_a_hundred_is_a_hundred(raw: float, shown: float) -> None:
    assert share_percent(raw) == Reading(shown, "%")


@pytest.mark.parametrize("raw", [-0.1, 101.1, 1e300, math.nan, math.inf, -math.inf, "50", b"", None])
def test_what_cannot_be_a_share_is_implausible(raw: object) -> None:
    assert share_percent(raw) == Reading[float].missing(Absence.IMPLAUSIBLE, "%")


def test_why_a_share_is_missing_is_kept() -> None:
    assert share_percent(Absence.NOT_SUPPORTED).absence is Absence.NOT_SUPPORTED


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


def snapshot(**changes: Any) -> ProbeSnapshot:
    given: dict[str, Any] = {
        "source": "nvidia",
        "label": "NVIDIA cards",
        "kind": "cards",
        "state": "ok",
        "absence": None,
        "taken_at": NOW,
        "driver_version": Reading("590.44.01"),
    }
    return ProbeSnapshot(**given | changes)


def test_a_snapshot_is_stale_from_the_second_missed_poll_on() -> None:
    seen = [snapshot(), *(snapshot().missed(Absence.TIMEOUT, polls) for polls in (1, 2, 3))]
    assert [s.stale for s in seen] == [False, False, True, True]
    assert [s.document()["stale"] for s in seen] == [False, False, True, True]
    assert {(s.state, s.taken_at) for s in seen} == {("ok", NOW)}
    assert [s.absence for s in seen] == [None, *[Absence.TIMEOUT] * 3]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"state": "absent"}, "says why"),
        ({"absence": Absence.TIMEOUT}, "says why"),
        ({"missed_polls": 1}, "says why"),
        ({"taken_at": NOW.replace(tzinfo=None)}, "aware"),
    ],
    ids=["absent without a reason", "good with a reason", "missed without a reason", "no time zone"],
)
def test_a_snapshot_that_contradicts_itself_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        snapshot(**changes)


def test_the_document_of_an_unreadable_card_is_json_and_keeps_its_units() -> None:
    card = CardReadings.unreadable(3, "NVIDIA", Absence.GPU_LOST)
    document = json.loads(json.dumps(snapshot(cards=(card,)).document()))
    assert document["taken_at"] == "2030-01-02T03:04:05+00:00"
    assert (document["source"], document["label"], document["kind"]) == ("nvidia", "NVIDIA cards", "cards")
    (shown,) = document["cards"]
    assert shown["index"] == 3
    assert shown["fault"]["code"] == "gpu_lost"
    assert shown["power_draw_w"] == {"value": None, "unit": "W", "absence": Absence.GPU_LOST.document()}
    assert shown["dram_activity_percent"]["unit"] == "%"
    assert shown["mig_instances"] == []
    assert "uuid" not in shown


def test_a_reading_names_what_it_was_read_from_where_there_is_a_choice() -> None:
    assert Reading(5, "B/s", None, "a counter").document()["read_from"] == "a counter"
    assert "read_from" not in Reading(5, "B/s").document()
    assert Reading(("idle",)).document()["value"] == ["idle"]
