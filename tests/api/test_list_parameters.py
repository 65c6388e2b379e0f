"""What the documentation says of the names by which a list is asked."""

from app.api.list_parameters import list_parameters
from app.web.hardware_columns import hardware_columns
from app.web.model_columns import model_columns


def said(additions: dict[str, list[dict[str, object]]]) -> dict[object, object]:
    return {parameter["name"]: parameter["description"] for parameter in additions["parameters"]}


def test_every_name_says_which_end_of_what_it_sets() -> None:
    words = said(list_parameters(hardware_columns(), "name or id"))
    assert words["q"] == "Words that name or id must all hold."
    assert words["min_memory"] == "Least memory, GB."
    assert words["max_year"] == "Most year."
    assert words["has_fp8"] == "Only this FP8 arithmetic: yes, no."
    assert words["kind"].startswith("Only this kind: ")  # type: ignore[attr-defined]


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
