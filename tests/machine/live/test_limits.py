"""What is in the way, by what was measured."""

from typing import Any

import pytest

from app.machine.live.limits import hold_of
from app.machine.live.machine import as_loaded
from app.machine.probes.reading import Absence
from app.scenario.answer import answer
from app.scenario.scenario import Scenario
from tests.factories import shipped_catalog
from tests.machine.live.seen import LLAMA, card, server

BASE = Scenario.model_validate({"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "h100-sxm-80gb"}})
FOUND = answer(as_loaded(BASE, server(**LLAMA)).scenario, shipped_catalog()).evaluation


@pytest.mark.parametrize(
    ("told", "of_card", "code", "word"),
    [
        ({"running": 0.0}, {}, "idle", "no request"),
        ({"kv_cache_usage": 0.97, "waiting": 31.0}, {"dram_activity_percent": 90.0}, "capacity", "97 % full and 31"),
        ({"kv_cache_usage": 0.97, "waiting": 1.0}, {}, "capacity", "1 request waits"),
        ({"kv_cache_usage": 0.97}, {"dram_activity_percent": 90.0}, "memory_bandwidth", "90 %"),
        ({}, {"throttle_reasons": ("hardware thermal limit", "idle")}, "clocks", "hardware thermal limit."),
        ({}, {"throttle_reasons": ("idle",), "dram_activity_percent": 71.0}, "memory_bandwidth", "71 %"),
        ({"flops_per_s": 7e14, "bytes_per_s": 1e12}, {}, "compute", "71 % of the arithmetic"),
        ({"output_tokens_per_s": 9000.0}, {}, "unknown", "another one than what runs"),
        ({"output_tokens_per_s": 0.0, "prompt_tokens_per_s": 0.0}, {}, "stalled", "no token came in 15 s"),
        ({"output_tokens_per_s": 0.0, "prompt_tokens_per_s": 9e4}, {"dram_activity_percent": 9.0}, "overhead", "9 %"),
        ({"output_tokens_per_s": 200.0, "prompt_tokens_per_s": 900.0}, {}, "overhead", "Neither roof"),
    ],
)
def test_a_server(told: dict[str, Any], of_card: dict[str, Any], code: str, word: str) -> None:
    hold = hold_of(server(**LLAMA | told), [card(**of_card)], FOUND)
    assert hold.code == code
    assert word in hold.sentence


def test_where_nothing_measured_tells_the_prediction_does() -> None:
    hold = hold_of(server(**LLAMA | {"output_tokens_per_s": Absence.NOT_REPORTED}), [card()], FOUND)
    assert hold.code == FOUND.verdict.limiter
    assert hold.sentence.startswith("By the prediction")


def test_cards_alone() -> None:
    assert hold_of(None, [card(gpu_utilization_percent=0)], None).code == "idle"
    busy = card(gpu_utilization_percent=99, dram_activity_percent=80.0, tensor_activity_percent=20.0)
    assert hold_of(None, [busy], None).code == "memory_bandwidth"
    assert hold_of(None, [card(gpu_utilization_percent=99)], None).code == "unknown"
