"""The load of the moment put into a scenario, and what was not told kept and said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.live.loaded import as_loaded
from app.scenario import Scenario
from tests.live.seen import LLAMA, server

BASE = Scenario.model_validate({"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "h100-sxm-80gb"}})


def test_requests_and_lengths_are_those_of_the_server() -> None:
    loaded = as_loaded(BASE, server(prefix_hit_rate=0.25, **LLAMA))
    workload = loaded.scenario.workload
    assert (workload.concurrency, workload.prompt_tokens, workload.output_tokens) == (12, 980, 210)
    assert workload.prefix_hit_rate == 0.25
    assert loaded.taken == (
        "12 running",
        "980 tokens of prompt",
        "210 tokens of answer",
        "25 % of the prompts found in the cache",
    )
    assert not loaded.kept
    assert not loaded.is_idle


def test_what_is_not_told_stays_as_asked_and_is_said() -> None:
    loaded = as_loaded(BASE, server(running=3.0))
    assert loaded.scenario.workload.concurrency == 3
    assert loaded.scenario.workload.prompt_tokens == 1000
    assert loaded.kept == ("1,000 tokens of prompt", "500 tokens of answer")
    nothing = as_loaded(BASE, server())
    assert nothing.scenario == BASE
    assert nothing.kept[0] == "64 at a time"
    assert not nothing.is_idle


def test_without_a_request_it_is_idle() -> None:
    assert as_loaded(BASE, server(running=0.0)).is_idle


@pytest.mark.parametrize("rate", [-0.1, 1.5])
def test_a_share_that_is_none_is_not_taken(rate: float) -> None:
    assert as_loaded(BASE, server(prefix_hit_rate=rate)).scenario.workload.prefix_hit_rate == 0.0


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_whatever_a_server_says_the_scenario_holds_together(running: float, tokens: float) -> None:
    as_loaded(BASE, server(running=running, mean_prompt_tokens=tokens, mean_output_tokens=tokens))


def test_a_share_is_taken_as_it_is_written_out() -> None:
    loaded = as_loaded(BASE, server(prefix_hit_rate=0.24999999999999994))
    assert loaded.scenario.workload.prefix_hit_rate == 0.25
    almost = as_loaded(BASE, server(prefix_hit_rate=0.9964))
    assert almost.scenario.workload.prefix_hit_rate == 0.996
    assert almost.taken == ("99.6 % of the prompts found in the cache",)


def test_one_is_one() -> None:
    loaded = as_loaded(BASE, server(mean_prompt_tokens=1.2, mean_output_tokens=1.0))
    assert loaded.taken == ("1 token of prompt", "1 token of answer")


def test_a_share_that_was_asked_for_and_is_not_told_is_said() -> None:
    asked = BASE.model_copy(update={"workload": BASE.workload.model_copy(update={"prefix_hit_rate": 0.4})})
    assert as_loaded(asked, server()).kept[-1] == "40 % of the prompts found in the cache"
    most = BASE.model_copy(update={"workload": BASE.workload.model_copy(update={"concurrency": None})})
    assert as_loaded(most, server()).kept[0] == "as many as fit at a time"


def test_what_was_asked_of_lengths_gives_way_to_what_is_measured() -> None:
    asked = Scenario.model_validate(
        BASE.document()
        | {"workload": {"answer_shape": "exponential", "longest_answer": 600, "shared_prefix_tokens": 900}}
    )
    workload = as_loaded(asked, server(mean_prompt_tokens=500.0, mean_output_tokens=800.0)).scenario.workload
    assert (workload.shared_prefix_tokens, workload.longest_answer) == (500, 800)
    untold = as_loaded(asked, server()).scenario.workload
    assert (untold.shared_prefix_tokens, untold.longest_answer) == (900, 600)
