"""SGLang's logs of several releases; its GB are GiB."""

import pytest

from app.catalog.catalog import Catalog
from app.engine_io.logs.reader import read_log
from tests.engine_io.logs import logs

GIB = 2.0**30


def test_keys_and_values_are_the_pool(catalog: Catalog) -> None:
    reading = read_log(logs.SGLANG, catalog)
    assert reading.document == {
        "model": {"id": "qwen3-235b-a22b"},
        "hardware": {"count": 4},
        "precision": {"weights": "fp8", "kv_cache": "bf16"},
        "parallelism": {"tensor": 4, "pipeline": 1, "expert": 4},
        "engine": {
            "id": "sglang",
            "memory_utilization": 0.93,
            "max_model_len": 40_960,
            "max_num_seqs": 2048,
            "max_batched_tokens": 8192,
            "block_size": 1,
            "prefix_caching": True,
            "enforce_eager": False,
            "total_memory_bytes": 77.43 * GIB,
            "weights_bytes": 55.10 * GIB,
            "non_framework_bytes": 0.0,  # what was free has it taken off already
            "kv_pool_bytes": 16.46 * GIB,
        },
        "observed": {"kv_tokens": 367_404},
    }
    assert [(f.rank, f.printed) for f in reading.figures if f.id == "free_before"] == [
        ("TP0", "77.43 GB"),
        ("TP1", "77.40 GB"),
    ]
    assert "h100-sxm-80gb" in reading.accelerator_candidates


def test_weights_follow_from_what_was_free_before_and_after(catalog: Catalog) -> None:
    reading = read_log(logs.SGLANG_OLD, catalog)
    assert reading.document["engine"]["weights_bytes"] == pytest.approx((23.34 - 8.30) * GIB)
    assert reading.document["observed"] == {"kv_tokens": 56_524}
    assert {f.rank for f in reading.figures} == {"GPU 0"}
    assert "rtx-3090" in reading.accelerator_candidates


def test_a_draft_loaded_second_is_not_counted_with_the_model(catalog: Catalog) -> None:
    reading = read_log(logs.SGLANG_DRAFT, catalog)
    document = reading.document
    assert document["engine"]["weights_bytes"] == 80.99 * GIB
    assert document["engine"]["kv_pool_bytes"] == 33.51 * GIB
    assert document["engine"]["total_memory_bytes"] == 139.0 * GIB
    assert document["parallelism"] == {"tensor": 1, "pipeline": 1, "expert": 8, "data": 8}
    assert document["hardware"] == {"count": 8}
    assert document["precision"] == {"kv_cache": "fp8"}
    assert document["techniques"] == {"speculative": {"draft_tokens": 4}}
    assert document["model"] == {"id": "deepseek-v3", "mtp": True}
    assert any("2.30 GiB" in note for note in reading.notes)
    assert not any("starts" in note for note in reading.notes)


def test_states_are_part_of_the_pool(catalog: Catalog) -> None:
    engine = read_log(logs.SGLANG_HYBRID, catalog).document["engine"]
    assert engine["kv_pool_bytes"] == pytest.approx((1.52 + 1.52 + 0.03 + 2.74) * GIB)


def test_caches_of_window_and_full_layers_add_up(catalog: Catalog) -> None:
    log = """\
[2026-07-18 10:00:00 TP0] Load weight end. elapsed=1 s, type=Gemma4ForCausalLM, avail mem=80.00 GB, mem usage=15.00 GB.
[2026-07-18 10:00:01 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 644444, K size: 21.51 GB, V size: \
21.51 GB
[2026-07-18 10:00:01 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 805556, K size: 10.76 GB, V size: \
10.76 GB
"""
    reading = read_log(log, catalog)
    assert reading.document["engine"]["kv_pool_bytes"] == pytest.approx(64.54 * GIB)
    assert "observed" not in reading.document
    summed = log + "[2026-07-18 10:00:01 TP0] SWAKVPool mem usage: 64.53 GB, swa size: 644444, full size: 805556\n"
    assert read_log(summed, catalog).document["engine"]["kv_pool_bytes"] == 64.53 * GIB


def test_a_profile_line_tells_the_rest(catalog: Catalog) -> None:
    log = (
        "[2026-05-15 09:09:53 TP0] Memory profiling: available_gpu_memory=57.01 GB, total_gpu_memory=93.58 GB, "
        "mem_fraction_static=0.60, rest_memory=19.58 GB\n[2026-05-15 09:10:50 TP0] max_total_num_tokens=1317632, "
        "chunked_prefill_size=-1, max_prefill_tokens=16384, max_running_requests=256, context_len=1048576"
    )
    document = read_log(log, catalog).document
    assert document["engine"]["kv_pool_bytes"] == 19.58 * GIB
    assert document["engine"]["memory_utilization"] == 0.6
    assert document["engine"]["max_batched_tokens"] == 16_384


def test_a_second_start_without_arguments_is_seen(catalog: Catalog) -> None:
    reading = read_log(logs.SGLANG_HYBRID + logs.SGLANG_HYBRID.replace("399740", "300000"), catalog)
    assert reading.document["observed"] == {"kv_tokens": 300_000}
    assert any("2 starts" in note for note in reading.notes)
