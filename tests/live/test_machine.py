"""From readings to a scenario: what is certain is taken, what is not is named."""

from typing import Any

import pytest

from app.live.machine import machine_of
from app.live.matched import bandwidth_gap, matched_accelerator
from app.probes.snapshot import ProbeSnapshot
from app.scenario import Scenario
from tests.factories import shipped_catalog
from tests.live.seen import LLAMA, card, cards, served, server

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
