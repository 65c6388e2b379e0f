"""TensorRT-LLM: text with and without its prefix, and the list of iterations that it shows in JSON."""

import json

from app.machine.probes.reading import Absence
from tests.machine.probes.servers.recorded import (
    STEP_S,
    FakeClock,
    FakeServer,
    after_two_scrapes,
    check,
    json_scrapes,
    probe_of,
    seen,
    two_scrapes,
)

TTFT, ITL = "trtllm_time_to_first_token_seconds", "trtllm_time_per_output_token_seconds"


def test_the_text_of_a_current_release() -> None:
    readings = seen(after_two_scrapes("tensorrt-llm-1.3.prom"))
    assert readings.kind == "tensorrt-llm"
    check(
        readings,
        {
            "model_name": ("nvidia/Llama-3.3-70B-Instruct-FP8", "model_name"),
            "running": (24, "trtllm_num_requests_running"),
            "waiting": (6, "trtllm_num_requests_waiting"),
            "kv_cache_usage": (0.625, "trtllm_kv_cache_utilization"),
            "kv_capacity_tokens": (256_000, "trtllm_kv_cache_max_blocks × trtllm_kv_cache_tokens_per_block"),
            # Of this window, not the gauge over its whole life, which says 0.9.
            "prefix_hit_rate": (
                0.75,
                "trtllm_kv_cache_reused_blocks_total ÷ "
                "(trtllm_kv_cache_reused_blocks_total + trtllm_kv_cache_missed_blocks_total)",
            ),
            "requests_per_s": (2.5, "trtllm_request_success_total"),
            "prompt_tokens_per_s": (2500, "trtllm_prompt_tokens_total"),
            "output_tokens_per_s": (1250, "trtllm_generation_tokens_total"),
            "mean_prompt_tokens": (1000, "trtllm_prompt_tokens_total ÷ trtllm_request_success_total"),
            "mean_output_tokens": (500, "trtllm_generation_tokens_total ÷ trtllm_request_success_total"),
            "ttft_p50_s": (0.15625, TTFT),
            "ttft_p99_s": (0.248125, TTFT),
            "ttft_mean_s": (0.2, TTFT),
            "itl_p50_s": (0.0125, ITL),
            "itl_p99_s": (0.02475, ITL),
            "itl_mean_s": (0.02, ITL),
        },
    )
    assert dict(readings.settings) == {
        "dtype": "bfloat16",
        "quantization": "FP8",
        "max_model_len": "131072",
        "tensor_parallel_size": "4",
        "pipeline_parallel_size": "1",
        "context_parallel_size": "1",
        "expert_parallel_size": "1",
        "gpu_count": "4",
        "page_size": "32",
        "enable_block_reuse": "True",
        "enable_partial_reuse": "True",
        "free_gpu_memory_fraction": "0.9",
        "cache_dtype": "fp8",
        "block_size": "32",
        "num_gpu_blocks": "8000",
    }


def test_the_first_builds_without_a_prefix() -> None:
    readings = seen(after_two_scrapes("tensorrt-llm-first.prom"))
    assert readings.kind == "tensorrt-llm"
    check(
        readings,
        {
            "requests_per_s": (1, "request_success_total"),
            "ttft_p50_s": (0.05, "time_to_first_token_seconds"),
            "ttft_p99_s": (0.0598, "time_to_first_token_seconds"),
            "ttft_mean_s": (0.05, "time_to_first_token_seconds"),
            "itl_p50_s": (0.005, "time_per_output_token_seconds"),
            "itl_p99_s": (0.0099, "time_per_output_token_seconds"),
            "itl_mean_s": (0.01, "time_per_output_token_seconds"),
            "latency_p50_s": (1.0, "e2e_request_latency_seconds"),
            "latency_p99_s": (1.49, "e2e_request_latency_seconds"),
            "queue_p50_s": (0.15, "request_queue_time_seconds"),
        },
    )


def test_the_list_of_iterations_where_there_is_no_text() -> None:
    first, second = json_scrapes("tensorrt-llm-statistics.json")
    clock, server = FakeClock(), FakeServer({"": first})
    probe = probe_of(server, clock)
    readings = seen(probe.snapshot())
    assert readings.kind == "tensorrt-llm"
    assert server.asked == ["", "/prometheus/metrics"]
    expected: dict[str, tuple[float | str, str] | Absence] = {
        "running": (8, "numActiveRequests"),
        "waiting": (3, "numQueuedRequests"),
        "kv_cache_usage": (0.75, "kvCacheStats.usedNumBlocks ÷ kvCacheStats.maxNumBlocks"),
        "kv_capacity_tokens": (64_000, "kvCacheStats.maxNumBlocks × kvCacheStats.tokensPerBlock"),
        "prefix_hit_rate": Absence.NEEDS_TWO_SAMPLES,
        # 600 tokens of a prompt and 8 that generate, then 8: the mean of the two iterations.
        "tokens_per_step": (308, "inflightBatchingStats.tokensPerIteration"),
    }
    check(readings, expected)
    server.answers[""] = second
    clock.seconds += STEP_S
    reused, missed = "kvCacheStats.reusedBlocks", "kvCacheStats.missedBlocks"
    check(
        seen(probe.snapshot()),
        expected
        | {
            "running": (12, "numActiveRequests"),
            "waiting": (0, "numQueuedRequests"),
            "kv_cache_usage": (0.5, "kvCacheStats.usedNumBlocks ÷ kvCacheStats.maxNumBlocks"),
            "prefix_hit_rate": (90 / 120, f"{reused} ÷ ({reused} + {missed})"),
            "tokens_per_step": (12 + 36, "inflightBatchingStats.tokensPerIteration"),
        },
    )
    assert server.asked == ["", "/prometheus/metrics", ""]


def test_data_parallel_ranks_of_iterations_are_added() -> None:
    ranks = [
        {
            "iter": 7,
            "attentionDpRank": rank,
            "numActiveRequests": 3 + rank,
            "kvCacheStats": {"maxNumBlocks": 100 * size},
        }
        for rank, size in ((0, 1), (1, 3))
    ]
    for rank, used in zip(ranks, (50, 30), strict=True):
        rank["kvCacheStats"]["usedNumBlocks"] = used  # type: ignore[index]
    readings = seen(probe_of(FakeServer({"": json.dumps(ranks).encode()}), FakeClock()).snapshot())
    assert readings.running.value == 7
    assert readings.kv_cache_usage.value == 0.2


def test_the_text_is_preferred_where_both_are_shown() -> None:
    text, _ = two_scrapes("tensorrt-llm-1.3.prom")
    clock, server = FakeClock(), FakeServer({"": b"[]", "/prometheus/metrics": text})
    probe = probe_of(server, clock)
    assert seen(probe.snapshot()).running.value == 24
    clock.seconds += STEP_S
    seen(probe.snapshot())
    assert server.asked == ["", "/prometheus/metrics", "/prometheus/metrics"]


def test_an_empty_list_is_a_server_at_rest() -> None:
    readings = seen(probe_of(FakeServer({"": b"[]"}), FakeClock()).snapshot())
    assert readings.kind == "tensorrt-llm"
    assert readings.running.absence is Absence.NOTHING_TO_MEASURE
