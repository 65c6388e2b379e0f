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
