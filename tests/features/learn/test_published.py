"""Published evidence is read whole: numbers stand in its text, each finding has a source, and nothing is left over."""

from pathlib import Path

import pytest

from app.calc.optimize.registry import SPECS
from app.features.learn.published import load_evidence

ROW = """
[[evidence]]
door = "paging"
text = "Gave {own} times, and {paging.gain_high} at most."
values = [{ id = "own", label = "gain", value = 2.5, unit = "times", digits = 3 }]
source = "Somebody, 2023"
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "published.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_numbers_are_put_into_the_text(tmp_path: Path) -> None:
    found = load_evidence(written(tmp_path, ROW))["paging"][0]
    assert found.text == "Gave 2.5 times, and 4 at most."
    assert [number.value for number in found.numbers] == [2.5, 4]


def test_what_is_shipped_speaks_of_most_doors_and_names_its_sources() -> None:
    shipped = load_evidence()
    assert set(shipped) == {spec.id for spec in SPECS}
    assert sum(bool(found) for found in shipped.values()) >= 7
    for found in (one for many in shipped.values() for one in many):
        assert found.source
        assert found.url == "" or found.url.startswith(("https://", "/"))


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        ('"Somebody, 2023"', '""', ValueError),
        ("{own} times, and ", "", ValueError),
        ("{paging.gain_high}", "{paging.nothing}", KeyError),
        ('"paging"', '"window"', ValueError),
    ],
)
def test_what_is_not_right_is_refused(tmp_path: Path, before: str, after: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        load_evidence(written(tmp_path, ROW.replace(before, after)))
