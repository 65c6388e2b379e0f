"""What is named to somebody who asks for what is not there.

A refusal as a problem: its form, its paths, its words.
"""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from app.scenario.refusal import Refusal, ScenarioError
from app.scenario.scenario import Scenario
from app.web.problem import (
    MEDIA_TYPE,
    MOST_ERRORS,
    MOST_NAMES,
    ProblemError,
    invalid,
    near_ids,
    refusals_of,
    refusals_of_items,
)
from tests.factories import scenario_document, shipped_catalog

NAMES = {id_: record.name for id_, record in shipped_catalog().accelerators.items()}


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ("h100", "h100-pcie-80gb"),
        ("H100-SXM-80GB", "h100-sxm-80gb"),
        ("h100 sxm", "h100-sxm-80gb"),
        ("h100_sxm", "h100-sxm-80gb"),
        ("h100-sxn-80gb", "h100-sxm-80gb"),
        ("geforce rtx 4090", "rtx-4090"),
        ("rtx4090", "rtx-4090"),
        ("Ironwod", "tpu-v7"),
    ],
)
def test_the_nearest_comes_first(given: str, first: str) -> None:
    assert near_ids(given, NAMES)[0] == first


@pytest.mark.parametrize("given", ["", " ", "---", "\0", "日本語", "<script>", "%2e%2e"])
def test_nonsense_is_near_nothing(given: str) -> None:
    assert near_ids(given, NAMES) == []


def test_few_are_named_whatever_is_asked() -> None:
    for given in ("a", "e" * 100_000, "nvidia", "rtx"):
        found = near_ids(given, NAMES)
        assert len(found) <= MOST_NAMES
        assert set(found) <= set(NAMES)
        assert len(set(found)) == len(found)


def refused(**sections: Any) -> dict[str, str]:
    """Path and message of everything that is wrong with a scenario of these sections."""
    with pytest.raises(ValidationError) as found:
        Scenario.model_validate(scenario_document() | sections)
    return {refusal.path: refusal.message for refusal in refusals_of(found.value)}


def test_a_problem_is_that_of_the_standard() -> None:
    response = ProblemError(404, "Nothing here.", headers={"Retry-After": "2"}).response()
    assert response.status_code == 404
    assert response.headers["content-type"] == MEDIA_TYPE
    assert response.headers["retry-after"] == "2"
    assert json.loads(bytes(response.body)) == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "Nothing here.",
    }


def test_a_problem_can_be_raised_as_python_raises() -> None:
    problem = ProblemError(404, "Nothing here.")
    problem.__traceback__ = None  # a web framework does this to what it has answered
    with pytest.raises(ProblemError):
        raise problem


def test_errors_are_counted_in_words_and_cut() -> None:
    one, many = invalid([Refusal("a", "No.")]), invalid([Refusal(f"a{n}", "No.") for n in range(MOST_ERRORS + 1)])
    assert one.document()["detail"] == "One field is not right; see errors."
    assert one.document()["errors"] == [{"path": "a", "message": "No."}]
    assert many.document()["detail"] == f"{MOST_ERRORS + 1} fields are not right; see errors."
    assert len(many.document()["errors"]) == MOST_ERRORS


def test_what_resolving_found_is_passed_on() -> None:
    refusals = [Refusal("model.id", "No."), Refusal("", "Neither.")]
    assert refusals_of(ScenarioError(refusals)) == refusals


@pytest.mark.parametrize(
    ("sections", "path", "message"),
    [
        ({"extra": 1}, "extra", "There is no such field."),
        ({"model": {}}, "model", "Give a catalog id, or a config of your own, or an architecture."),
        (
            {"model": {"id": "x", "config": {}}},
            "model",
            "Give a catalog id, or a config of your own, or an architecture.",
        ),
        ({"model": {"id": "x", "name": "y"}}, "model", "A name goes with a config; a catalog model has its own."),
        ({"hardware": {"custom": {}}}, "hardware.custom.memory_gb", "This field is needed."),
        ({"workload": {"prompt_tokens": "7"}}, "workload.prompt_tokens", "Must be a whole number."),
        ({"workload": {"prompt_tokens": 7.5}}, "workload.prompt_tokens", "Must be a whole number."),
        ({"workload": {"prompt_tokens": True}}, "workload.prompt_tokens", "Must be a whole number."),
        ({"engine": {"memory_utilization": "1"}}, "engine.memory_utilization", "Must be a number, and a finite one."),
        (
            {"engine": {"memory_utilization": float("nan")}},
            "engine.memory_utilization",
            "Must be a number, and a finite one.",
        ),
        ({"memory_basis": "x"}, "memory_basis", "Must be one of 'reported' or 'marketed'."),
        (
            {"model": {"id": "No Id"}},
            "model.id",
            "Must be an id: small letters, digits, dot, dash and underscore.",
        ),
    ],
)
def test_words_for_a_field(sections: dict[str, Any], path: str, message: str) -> None:
    assert refused(**sections)[path] == message


def test_a_key_that_is_wrong_is_named_and_not_its_place() -> None:
    custom = {"memory_gb": 1, "bandwidth_gb_per_s": 1, "dense_tflops": {"bf17": 1}}
    assert set(refused(hardware={"custom": custom})) == {"hardware.custom.dense_tflops.bf17"}


def test_what_was_sent_is_not_repeated() -> None:
    secret = "what-was-sent"
    found = refused(
        workload={"prompt_tokens": secret},
        precision={"weights": secret},
        model={"id": f"{secret} "},
        memory_basis=secret,
        engine={"version": secret * 20},
    )
    assert len(found) == 5
    assert not [message for message in found.values() if secret in message]


def test_every_message_is_a_sentence() -> None:
    found = refused(workload={"prompt_tokens": 0, "prefix_hit_rate": 2}, techniques={"speculative": 1}, engine=[])
    assert len(found) == 4
    for message in found.values():
        assert message[0].isupper()
        assert message.endswith(".")


def test_long_keys_are_cut_in_a_path_and_a_leading_part_left_out() -> None:
    item = {"type": "missing", "loc": ("body", "x" * 100, 3), "msg": "Field required"}
    assert refusals_of_items([item], skip=1) == [Refusal(f"{'x' * 60}….3", "This field is needed.")]
