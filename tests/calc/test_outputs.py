"""The table of outputs: it has every number of the document, and no number depends on how one is called."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from app.calc import outputs
from app.calc.output import Face, Form
from app.calc.outputs import OUTPUTS, label_at, output_at
from app.features.workbench.numbers import levels, metrics
from app.scenario.answer import Answer, answer
from app.scenario.document import document
from app.scenario.scenario import Scenario
from tests.factories import shipped_catalog
from tests.features.workbench.test_evaluate import VARIETY

LISTS_AND_WORDS = {"scenario", "verdict", "roofline", "levers", "explanations", "warnings", "comparison"}
SIDES = {"ceiling", "low", "mid", "high"}


@cache
def answered(place: int) -> Answer:
    return answer(Scenario.model_validate(VARIETY[place]), shipped_catalog())


def leaves(part: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number outside lists, by its path."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield from leaves(value, f"{path}.{key}".removeprefix("."))
    elif isinstance(part, int | float) and not isinstance(part, bool):
        yield path, part


def numbers(part: Any) -> Any:
    """The same without a word: what is left is to be alike to the last digit."""
    if isinstance(part, dict):
        return {key: numbers(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [numbers(value) for value in part]
    return None if isinstance(part, str) else part


def test_no_path_and_no_label_stands_for_two_numbers() -> None:
    assert len({output.path for output in OUTPUTS}) == len(OUTPUTS)
    assert len({output.label for output in OUTPUTS}) == len(OUTPUTS)


@pytest.mark.parametrize("place", range(len(VARIETY)))
def test_every_number_and_every_working_is_in_the_table(place: int) -> None:
    found = document(answered(place))
    told = {key: value for key, value in found.items() if key not in LISTS_AND_WORDS}
    for path, _ in leaves(told):
        table, side = output_at(path), path.rpartition(".")[2]
        assert table.path == path or (table.form in (Form.ESTIMATE, Form.EXPECTED, Form.INTERVAL) and side in SIDES)
    for explanation in found["explanations"]:
        assert explanation["label"] == label_at(explanation["id"])
        assert explanation["unit"] == output_at(explanation["id"]).unit


@pytest.mark.parametrize("place", [0, 2, 8, 11])
def test_renaming_every_label_changes_no_number(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario.model_validate(VARIETY[place])
    before = document(answer(scenario, shipped_catalog()))
    renamed = tuple(replace(output, label=f"Number {i}") for i, output in enumerate(OUTPUTS))
    outputs.outputs_below.cache_clear()
    outputs._by_path.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(outputs, "OUTPUTS", renamed)
        after = document(answer(scenario, shipped_catalog()))
    outputs.outputs_below.cache_clear()
    outputs._by_path.cache_clear()
    assert after["explanations"][0]["label"] != before["explanations"][0]["label"]
    assert json.dumps(numbers(after)) == json.dumps(numbers(before))


def test_the_faces_show_what_the_table_says() -> None:
    evaluation = answered(0).evaluation
    cards = [output.label for output in OUTPUTS if Face.CARD in output.on]
    assert {metric.label for metric in metrics(evaluation, binary=False)} == set(cards)
    assert {row.label for row in levels(evaluation, binary=False)} <= {
        output.label for output in OUTPUTS if Face.LEVELS in output.on
    }
