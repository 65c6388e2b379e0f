"""llama.cpp: gauges of the cache in older builds, slots in newer ones, and nothing of what slots hold but counts."""

import json
from typing import Any

import pytest

from app.machine.probes.reading import Absence
from tests.machine.probes.servers.recorded import (
    FOLDER,
    STEP_S,
    FakeClock,
    FakeServer,
    after_two_scrapes,
    check,
    probe_of,
    seen,
    two_scrapes,
)

SLOTS = (FOLDER / "llama-cpp-2026-slots.json").read_bytes()
PROPS = (FOLDER / "llama-cpp-2026-props.json").read_bytes()


def test_a_current_build_with_its_slots() -> None:
    snapshot = after_two_scrapes("llama-cpp-2026.prom", slots=SLOTS, props=PROPS)
    readings = seen(snapshot)
    assert readings.kind == "llama.cpp"
    predicted = "llamacpp:tokens_predicted_total"
    cached, prompt = "llamacpp:prompt_tokens_cached_total", "llamacpp:prompt_tokens_total"
    check(
        readings,
        {
            "model_name": ("Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "model_path"),
            "running": (2, "llamacpp:requests_processing"),
            "waiting": (1, "llamacpp:requests_deferred"),
            # Two of four slots work, with 4,096 and 2,048 of 8,192 tokens; what the idle ones hold is free.
            "kv_cache_usage": (0.1875, "/slots:n_prompt_tokens ÷ /slots:n_ctx"),
            "prefix_hit_rate": (0.2, f"{cached} ÷ ({cached} + {prompt})"),
            # 400 processed and 100 found in the cache.
            "prompt_tokens_per_s": (500, f"{prompt} + {cached}"),
            # Counted, not its gauge of throughput, which is an average over its whole life.
            "output_tokens_per_s": (50, predicted),
            "itl_mean_s": (0.02, f"llamacpp:tokens_predicted_seconds_total ÷ {predicted}"),
            "tokens_per_step": (15, f"({prompt} + {predicted}) ÷ llamacpp:n_decode_total"),
        },
    )
    assert dict(readings.settings) == {"n_ctx": "8192", "total_slots": "4"}
    assert snapshot.driver_version.value == "b6918-a1b2c3d4"
    assert "secret" not in json.dumps(snapshot.document())
    assert ".." not in json.dumps(snapshot.document()["server"])


def test_an_older_build_needs_no_slots() -> None:
    first, second = two_scrapes("llama-cpp-2024.prom")
    clock, server = FakeClock(), FakeServer({"": first})
    probe = probe_of(server, clock)
    probe.snapshot()
    server.answers[""] = second
    clock.seconds += STEP_S
    predicted = "llamacpp:tokens_predicted_total"
    check(
        seen(probe.snapshot()),
        {
            "running": (1, "llamacpp:requests_processing"),
            "waiting": (0, "llamacpp:requests_deferred"),
            "kv_cache_usage": (0.63, "llamacpp:kv_cache_usage_ratio"),
            "prompt_tokens_per_s": (100, "llamacpp:prompt_tokens_total"),
            "output_tokens_per_s": (20, predicted),
            "itl_mean_s": (0.025, f"llamacpp:tokens_predicted_seconds_total ÷ {predicted}"),
        },
    )
    assert "/slots" not in server.asked
    assert server.asked.count("/props") == 1  # Asked once, and not again within ten seconds.


def test_without_its_metrics_flag_the_slots_still_tell_something() -> None:
    server = FakeServer({"/slots": SLOTS, "/props": PROPS})
    readings = seen(probe_of(server, FakeClock()).snapshot())
    assert (readings.kind, readings.running.value, readings.running.read_from) == (
        "llama.cpp",
        2,
        "/slots:is_processing",
    )
    assert readings.output_tokens_per_s.absence is Absence.NOT_REPORTED
    assert server.asked == ["", "/metrics", "/prometheus/metrics", "/slots", "/props"]


def test_one_slot_has_the_whole_cache() -> None:
    one = json.dumps(json.loads(SLOTS)[:1]).encode()
    readings = seen(after_two_scrapes("llama-cpp-2026.prom", slots=one))
    assert (readings.kv_capacity_tokens.value, readings.kv_cache_usage.value) == (8192, 0.5)


def test_builds_that_do_not_tell_the_tokens_of_a_slot_have_no_use_of_the_cache() -> None:
    slots: list[dict[str, Any]] = json.loads(SLOTS)
    del slots[0]["n_prompt_tokens"]
    readings = seen(after_two_scrapes("llama-cpp-2026.prom", slots=json.dumps(slots).encode()))
    assert readings.kv_cache_usage.absence is Absence.NOT_REPORTED


@pytest.mark.parametrize(
    "slots",
    [
        b"",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'[{"n_ctx": -1, "is_processing": true}]',
        b'[{"n_ctx": 1}]',
        b"[null]",
        b"\xff",
    ],
    ids=["nothing", "empty", "object", "deep", "negative", "half", "null", "binary"],
)
def test_slots_that_make_no_sense_are_none(slots: bytes) -> None:
    readings = seen(after_two_scrapes("llama-cpp-2026.prom", slots=slots, props=slots))
    assert readings.running.value == 2
    assert readings.kv_cache_usage.absence is Absence.NOT_REPORTED
    assert not readings.settings
