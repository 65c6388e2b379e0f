"""The words and the draft model of a scenario's engine, as they are posted."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

from app.scenario.scenario import Scenario
from tests.factories import scenario, scenario_document


def places(**sections: Any) -> set[str]:
    """Where the document is refused."""
    with pytest.raises(ValidationError) as caught:
        Scenario.model_validate(scenario_document(**sections))
    return {".".join(str(part) for part in error["loc"]) for error in caught.value.errors()}


@pytest.mark.parametrize("version", ["0.20.1rc1.dev16", "v0.11.0", "b6123", "1.2.0_a+cu128-x", "7", "x" * 40])
def test_a_release_is_a_short_plain_word(version: str) -> None:
    assert scenario(engine={"version": version}).engine.version == version


@pytest.mark.parametrize("version", ["", " 0.11", "0.11 ", "0 11", "-1", ".1", "b1 (ü)", "0.11\n", "x" * 41, 11, 0.11])
def test_any_other_release_is_refused(version: Any) -> None:
    assert places(engine={"version": version}) == {"engine.version"}


@pytest.mark.parametrize(
    "draft", [{}, {"id": "qwen3-0.6b", "config": {}}, {"id": None}, {"id": "Qwen"}, {"config": {"a": math.nan}}, "qwen"]
)
def test_a_draft_model_is_named_or_described_and_not_both(draft: Any) -> None:
    speculative = {"draft_tokens": 3, "draft": draft}
    found = places(techniques={"speculative": speculative})
    assert len(found) == 1
    assert found.pop().startswith("techniques.speculative.draft")
