"""The load of the moment put into a scenario, and what was not told kept and said.

From readings to a scenario: what is certain is taken, what is not is named.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.machine.live.machine import as_loaded, bandwidth_gap, machine_of, matched_accelerator
from app.machine.probes.snapshot import ProbeSnapshot
from app.scenario.scenario import Scenario
from tests.factories import shipped_catalog
from tests.machine.live.seen import LLAMA, card, cards, served, server

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


CATALOG = shipped_catalog()


def document(*snapshots: ProbeSnapshot) -> dict[str, Any]:
    return dict(machine_of(snapshots, CATALOG).document)


def test_card_and_server_make_a_whole_scenario() -> None:
    told = {"gpu_memory_utilization": "0.85", "cache_dtype": "fp8_e4m3", "block_size": "16", "max_model_len": "8192"}
    machine = machine_of([cards(card()), served(server(settings=told, **LLAMA))], CATALOG)
    assert machine.is_whole
    assert machine.document == {
        "model": {"id": "llama-3.1-8b"},
        "hardware": {"id": "h100-sxm-80gb"},
        "precision": {"kv_cache": "fp8"},
        "engine": {"id": "vllm", "memory_utilization": 0.85, "block_size": 16, "max_model_len": 8192},
    }
    Scenario.model_validate(machine.document)


def test_a_format_in_the_name_is_taken() -> None:
    told = document(served(server(**LLAMA | {"model_name": "acme/Llama-3.1-8B-Instruct-FP8"})))
    assert told["precision"] == {"weights": "fp8"}


def test_what_no_probe_tells_is_missing_by_name() -> None:
    assert machine_of([], CATALOG).missing == ("model", "hardware")
    assert machine_of([cards(card())], CATALOG).missing == ("model",)
    assert machine_of([served(server(**LLAMA))], CATALOG).missing == ("hardware",)
    unknown = machine_of([cards(card(name="NVIDIA Z9")), served(server(model_name="acme/secret-1"))], CATALOG)
    assert unknown.missing == ("model", "hardware")


def test_a_server_that_does_not_say_how_it_is_split_is_taken_to_use_all_cards_and_that_is_said() -> None:
    four = cards(*(card(index) for index in range(4)))
    machine = machine_of([four, served(server(**LLAMA))], CATALOG)
    assert machine.document["parallelism"] == {"tensor": 4}
    assert "all 4 cards" in machine.notes[0]
    told = machine_of([four, served(server(settings={"tensor_parallel_size": "2"}, **LLAMA))], CATALOG)
    assert told.document["parallelism"] == {"tensor": 2}
    assert not told.notes


def test_without_a_server_nothing_is_split() -> None:
    assert document(cards(card(0), card(1))) == {"hardware": {"id": "h100-sxm-80gb"}}


@pytest.mark.parametrize("told", ["", "auto", "-1", "0", "9" * 40, "1e3", "NaN", "\u0661"])
def test_a_setting_that_is_no_count_is_left_out(told: str) -> None:
    settings = {"block_size": told, "gpu_memory_utilization": told, "cache_dtype": told}
    assert document(served(server(settings=settings, **LLAMA)))["engine"] == {"id": "vllm"}


@pytest.mark.parametrize(
    ("kind", "engine"),
    [("sglang", "sglang"), ("triton", "tensorrt-llm"), ("llama.cpp", "llama.cpp"), ("endpoint-picker", "llm-d")],
)
def test_the_engine_follows_the_kind(kind: str, engine: str) -> None:
    assert document(served(server(kind, **LLAMA)))["engine"]["id"] == engine


def test_a_kind_without_an_engine_of_ours_names_none() -> None:
    assert "engine" not in document(served(server("tgi", **LLAMA)))


def test_the_bandwidth_is_compared_only_where_it_differs() -> None:
    assert bandwidth_gap(card(), "h100-sxm-80gb", CATALOG) is None
    assert bandwidth_gap(card(peak_bandwidth_bytes_per_s=2e12), "h100-sxm-80gb", CATALOG) == (2e12, 3.35e12)
    assert bandwidth_gap(card(), None, CATALOG) is None
    assert matched_accelerator(card(), CATALOG) == "h100-sxm-80gb"
