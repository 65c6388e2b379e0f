"""llama.cpp against its start-up logs: the cache to the MiB, the compute buffer within its interval."""

import pytest

from app.calc.memory.engines.llama_cpp import SlotRoom
from app.calc.memory.engines.parts import Part
from tests.log_evidence import measured
from tests.logged_starts import GIB, Log, alone_on_any_card, by_id, logs

MIB = 2**20
USUAL_SLOTS = 4
"""Slots of a server that is told none; they share one cache."""
LLAMA_CPP = [
    log for log in logs() if log.engine == "llama.cpp" and "max_model_len" in log.scenario["engine"] and log.model_known
]


def room(log: Log) -> tuple[SlotRoom, int, int]:
    """The plan of the whole model, its context and its slots."""
    engine = log.scenario["engine"]
    plan = alone_on_any_card(log).tightest.plan
    assert isinstance(plan, SlotRoom)
    return plan, engine["max_model_len"], engine.get("max_num_seqs", USUAL_SLOTS)


def cache_is_met(log: Log) -> bool:
    plan, context, slots = room(log)
    return abs(log.logged["pool_gib"] * GIB - plan.shared_row_bytes(context, slots)) < MIB


SIZED = [log for log in LLAMA_CPP if "pool_gib" in log.logged]


@pytest.mark.parametrize("log_id", [log.id for log in SIZED if log.exception is None])
def test_the_cache_has_the_printed_size(log_id: str) -> None:
    assert cache_is_met(by_id(log_id))


@pytest.mark.parametrize("log_id", [log.id for log in SIZED if log.exception])
def test_an_exception_is_one(log_id: str) -> None:
    assert not cache_is_met(by_id(log_id)), "the rules reproduce this log now: take its exception away"


@pytest.mark.parametrize("log_id", [log.id for log in LLAMA_CPP if "states_gib" in log.logged])
def test_states_are_kept_in_32_bits_for_each_slot(log_id: str) -> None:
    plan, _, slots = room(by_id(log_id))
    assert slots * plan.layers.state_bytes / MIB == pytest.approx(by_id(log_id).logged["states_gib"] * 1024, abs=0.1)


@pytest.mark.parametrize("log_id", [log.id for log in LLAMA_CPP if "context_gib" in log.logged])
def test_a_breakdown_shows_rows_and_states_together(log_id: str) -> None:
    plan, context, slots = room(by_id(log_id))
    ours = plan.shared_row_bytes(context, slots) + slots * plan.layers.state_bytes
    assert abs(by_id(log_id).logged["context_gib"] * GIB - ours) < MIB


def test_enough_caches_are_compared() -> None:
    assert len([log for log in SIZED if log.exception is None]) >= 30


def test_eight_of_ten_compute_buffers_lie_within() -> None:
    found = measured("llama.cpp", Part.ACTIVATION)
    assert len(found) >= 10
    assert sum(one.holds for one in found) >= 0.8 * len(found)
