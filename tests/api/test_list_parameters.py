"""What the documentation says of the names by which a list is asked."""

import re

import pytest

from app.api.list_parameters import list_parameters, scenario_parameters
from app.web.hardware_columns import hardware_columns
from app.web.model_columns import model_columns


def said(additions: dict[str, list[dict[str, object]]]) -> dict[object, object]:
    return {parameter["name"]: parameter["description"] for parameter in additions["parameters"]}


def test_every_name_says_which_end_of_what_it_sets() -> None:
    words = said(list_parameters(hardware_columns(), "name or id"))
    assert words["q"] == "Words that name or id must all hold."
    assert words["min_memory"] == "Least memory, GB."
    assert words["max_year"] == "Most year."
    assert words["has_fp8"] == "Only this FP8 arithmetic."


def test_every_name_says_what_it_takes() -> None:
    parameters = list_parameters(hardware_columns(), "name or id", 50)["parameters"]
    schemas = {parameter["name"]: parameter["schema"] for parameter in parameters}
    assert schemas["has_fp8"] == {"type": "string", "enum": ["yes", "no"]}
    assert schemas["min_memory"] == {"type": "number", "minimum": 0, "maximum": 1e9}
    assert {"memory", "-memory"} <= set(schemas["sort"]["enum"])
    assert schemas["page"]["type"] == "integer"


def test_the_inputs_of_a_scenario_are_typed() -> None:
    parameters = {parameter["name"]: parameter for parameter in scenario_parameters()}
    assert len(parameters) == 91
    assert parameters["prompt"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 10**8, "default": 1000}
    assert parameters["prompt"]["description"].startswith("Prompt length, tokens. ")
    assert parameters["hit"]["schema"] == {"type": "number", "minimum": 0, "maximum": 1, "default": 0.0}
    assert parameters["eager"]["schema"] == {"type": "boolean", "default": False}
    assert parameters["kv"]["schema"]["enum"] == ["bf16", "fp16", "fp8", "int8", "fp4", "int4", "fp32"]
    assert parameters["batch"]["allowEmptyValue"]
    assert [name for name, parameter in parameters.items() if parameter["required"]] == ["model", "hw"]


@pytest.mark.parametrize(
    ("text", "is_size"), [("46.8 GiB", True), ("5e10", True), (" 12 b", True), ("4 PB", False), ("GiB", False)]
)
def test_a_size_may_have_its_unit(text: str, is_size: bool) -> None:
    (schema,) = (one["schema"] for one in scenario_parameters() if one["name"] == "pool")
    assert bool(re.fullmatch(schema["anyOf"][1]["pattern"], text)) == is_size


def test_an_acronym_keeps_its_letters() -> None:
    for columns in (hardware_columns(), model_columns()):
        assert not any(
            word[:1].islower() and word[1:2].isupper()
            for text in said(list_parameters(columns, "id")).values()
            for word in str(text).split()
        )


def test_no_name_is_told_twice_and_none_is_required() -> None:
    parameters = list_parameters(model_columns(), "id")["parameters"]
    names = [parameter["name"] for parameter in parameters]
    assert len(names) == len(set(names)) > 10
    assert not any(parameter["required"] for parameter in parameters)
