"""The file of measured roofs: whole or not at all, the newest of each, and forgiving when it is read."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from app.calc.dtypes import Dtype
from app.machine.peaks.outcome import Stream
from app.machine.peaks.result import FILE_NAME, MOST_FILE_BYTES, MOST_RUNS, RoofStore
from tests.machine.peaks.measured import AT, product, roofs, stream
from tests.machine.peaks.workers import UUID


@pytest.fixture
def store(tmp_path: Path) -> RoofStore:
    return RoofStore(tmp_path / "data")


def file_of(tmp_path: Path) -> Path:
    return tmp_path / "data" / FILE_NAME


def test_what_is_added_is_read(store: RoofStore, tmp_path: Path) -> None:
    assert store.read() == ()
    store.add(roofs())
    assert store.read() == (roofs(),)
    assert UUID not in file_of(tmp_path).read_text()
    assert file_of(tmp_path).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "data").iterdir()] == [FILE_NAME]


def test_the_newest_of_each_kind_and_card_is_kept(store: RoofStore) -> None:
    store.add(roofs())
    later = roofs(
        measured_at=AT + timedelta(days=1), streams=(stream(2.95e12),), products=(product(1.4e15, Dtype.FP8),)
    )
    store.add(later)
    other = roofs(measured_at=AT + timedelta(days=2), memory_total_bytes=2**36)
    store.add(other)
    newest, between, oldest = store.read()
    assert (newest, between) == (other, later)
    assert oldest.measured_at == AT
    assert oldest.kinds == {Stream.TRIAD, Dtype.BF16}
    store.add(roofs(measured_at=AT + timedelta(days=3)))
    assert [run.kinds for run in store.read() if run.card == later.card] == [roofs().kinds, {Dtype.FP8}]


def test_the_file_does_not_grow_for_ever(store: RoofStore, tmp_path: Path) -> None:
    file_of(tmp_path).parent.mkdir()
    store.add(roofs())
    entry = json.loads(file_of(tmp_path).read_text())["roofs"][0]
    many = [entry | {"card_name": f"card {number}"} for number in range(MOST_RUNS + 20)]
    file_of(tmp_path).write_text(json.dumps({"version": 1, "roofs": many}))
    store.add(roofs())
    assert len(store.read()) == MOST_RUNS
    assert roofs() in store.read()
    assert file_of(tmp_path).stat().st_size < MOST_FILE_BYTES


def lose_an_end(text: str) -> str:
    return text[:-20]


def put_nan(text: str) -> str:
    return text.replace("1073741824", "NaN", 1)


BROKEN: dict[str, Callable[[str], str]] = {
    "empty": lambda _: "",
    "half": lose_an_end,
    "NaN": put_nan,
    "a list": lambda _: "[]",
    "a version to come": lambda text: text.replace('"version":1', '"version":2'),
    "no list": lambda _: '{"version": 1, "roofs": {}}',
    "deep": lambda _: "[" * 100_000,
    "huge": lambda text: text + " " * MOST_FILE_BYTES,
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_as_good_as_none_and_replaced(
    store: RoofStore, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    store.add(roofs())
    file = file_of(tmp_path)
    file.write_text(BROKEN[kind](file.read_text()))
    assert store.read() == ()
    assert FILE_NAME in caplog.text
    assert str(tmp_path) not in caplog.text
    store.add(roofs())
    assert store.read() == (roofs(),)


def test_no_text_at_all(store: RoofStore, tmp_path: Path) -> None:
    file_of(tmp_path).parent.mkdir()
    file_of(tmp_path).write_bytes(b"\xff\xfe\x00")
    assert store.read() == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("card_name", "<b>\n"),
        ("card_name", None),
        ("measured_at", "2026-11-30T12:00:00"),
        ("measured_at", 5),
        ("memory_total_bytes", -5),
        ("streams", "none"),
        ("streams", [{"stream": "copy", "array_bytes": 1, "timing": {"iterations": 1, "median_s": 0, "best_s": 0}}]),
        ("before", {}),
        ("before", {"sm_clock_mhz": {"value": None, "unit": "MHz", "absence": None, "read_from": ""}}),
        ("skipped", [{"kind": "fp8", "size": 1, "reason": "?"}]),
    ],
    ids=str,
)
def test_a_broken_entry_is_left_out(store: RoofStore, tmp_path: Path, field: str, value: object) -> None:
    store.add(roofs())
    file = file_of(tmp_path)
    told = json.loads(file.read_text())
    told["roofs"] += [5, None, told["roofs"][0] | {field: value}, told["roofs"][0] | {"card_name": "whole"}]
    file.write_text(json.dumps(told))
    assert {run.card_name for run in store.read()} == {roofs().card_name, "whole"}


def test_what_cannot_be_written_leaves_what_was_there(
    store: RoofStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(roofs())

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        store.add(roofs(measured_at=AT + timedelta(days=1)))
    assert store.read() == (roofs(),)
    assert [path.name for path in (tmp_path / "data").iterdir()] == [FILE_NAME]
