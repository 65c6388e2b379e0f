"""vLLM: the names of three generations. The numbers are worked by hand from the two scrapes of each file."""

from app.machine.probes.reading import Absence
from tests.machine.probes.servers.recorded import after_two_scrapes, check, seen

TTFT, ITL = "vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds"
OLD_ITL = "vllm:time_per_output_token_seconds"
BEYOND = " (beyond its last bucket)"


def test_two_engines_of_the_current_release_are_one_server() -> None:
    readings = seen(after_two_scrapes("vllm-0.33.prom"))
    assert (readings.kind, readings.window_s) == ("vllm", 10.0)
    check(
        readings,
        {
            "model_name": ("meta-llama/Llama-3.1-8B-Instruct", "model_name"),
            "running": (20, "vllm:num_requests_running"),
            "waiting": (4, "vllm:num_requests_waiting"),
            # The first engine has three times the capacity of the second: (3 × 0.5 + 0.25) ÷ 4.
            "kv_cache_usage": (0.4375, "vllm:kv_cache_usage_perc"),
            "kv_capacity_tokens": (400_000, "kv_cache_size_tokens"),
            "prefix_hit_rate": (0.3, "vllm:prefix_cache_hits_total ÷ vllm:prefix_cache_queries_total"),
            "preemptions_per_s": (0.5, "vllm:num_preemptions_total"),
            "requests_per_s": (4, "vllm:request_success_total"),
            "prompt_tokens_per_s": (1600, "vllm:prompt_tokens_total"),
            "output_tokens_per_s": (800, "vllm:generation_tokens_total"),
            "mean_prompt_tokens": (500, "vllm:request_prompt_tokens"),
            "mean_output_tokens": (200, "vllm:request_generation_tokens"),
            # 40 requests: 25 within 0.1 s, 37 within 0.25 s, all within 0.5 s.
            "ttft_p50_s": (0.1 * 20 / 25, TTFT),
            "ttft_p99_s": (0.25 + 0.25 * (39.6 - 37) / 3, TTFT),
            "ttft_mean_s": (7 / 40, TTFT),
            "itl_p50_s": (0.01 + 0.015 * 1500 / 3960, ITL),
            "itl_p99_s": (0.01 + 0.015 * 3950 / 3960, ITL),
            "itl_mean_s": (0.016, ITL),
            "latency_p50_s": (2, "vllm:e2e_request_latency_seconds"),
            "latency_p99_s": (3.96, "vllm:e2e_request_latency_seconds"),
            "queue_p50_s": Absence.NOTHING_TO_MEASURE,
            "tokens_per_step": (50, "vllm:iteration_tokens_total"),
            # Of one GPU, so the mean of the two engines: (2 + 1) ÷ 2 × 10¹⁵ in ten seconds.
            "flops_per_s": (1.5e14, "vllm:estimated_flops_per_gpu_total"),
            "bytes_per_s": (
                1.6e12,
                "vllm:estimated_read_bytes_per_gpu_total + vllm:estimated_write_bytes_per_gpu_total",
            ),
        },
    )
    # What the engines do not agree on is left out, and so is all that is not on the list.
    assert dict(readings.settings) == {
        "block_size": "16",
        "cache_dtype": "auto",
        "enable_prefix_caching": "True",
        "gpu_memory_utilization": "0.9",
    }


def test_the_names_before_the_cache_gauges_were_renamed() -> None:
    readings = seen(after_two_scrapes("vllm-0.8.prom"))
    check(
        readings,
        {
            # Of a path to the model only its end is shown.
            "model_name": ("Qwen/Qwen2.5-7B-Instruct", "model_name"),
            "running": (4, "vllm:num_requests_running"),
            "waiting": (0, "vllm:num_requests_waiting"),
            "kv_cache_usage": (0.125, "vllm:gpu_cache_usage_perc"),
            "kv_capacity_tokens": (2048 * 16, "num_gpu_blocks × block_size"),
            "prefix_hit_rate": (0.75, "vllm:gpu_prefix_cache_hits_total ÷ vllm:gpu_prefix_cache_queries_total"),
            "preemptions_per_s": (0, "vllm:num_preemptions_total"),
            "requests_per_s": (0, "vllm:request_success_total"),
            "prompt_tokens_per_s": (200, "vllm:prompt_tokens_total"),
            "output_tokens_per_s": (40, "vllm:generation_tokens_total"),
            "ttft_p50_s": (0.03, TTFT),
            "ttft_p99_s": (0.0398, TTFT),
            "ttft_mean_s": (0.025, TTFT),
            "itl_p50_s": (0.005, OLD_ITL),
            "itl_p99_s": (0.0099, OLD_ITL),
            "itl_mean_s": (0.006, OLD_ITL),
        },
    )
    assert readings.settings["num_gpu_blocks"] == "2048"
    assert "swap_space_bytes" not in readings.settings


def test_the_first_engine() -> None:
    readings = seen(after_two_scrapes("vllm-0.5.prom"))
    check(
        readings,
        {
            "model_name": ("mistralai/Mistral-7B-v0.1", "model_name"),
            "running": (2, "vllm:num_requests_running"),
            "waiting": (5, "vllm:num_requests_waiting"),
            "kv_cache_usage": (0.75, "vllm:gpu_cache_usage_perc"),
            "kv_capacity_tokens": (64_000, "num_gpu_blocks × block_size"),
            "prefix_hit_rate": (0.375, "vllm:gpu_prefix_cache_hit_rate"),
            "preemptions_per_s": (0.2, "vllm:num_preemptions_total"),
            "prompt_tokens_per_s": (50, "vllm:prompt_tokens_total"),
            # Counted, not its own gauge of throughput, which says 17.
            "output_tokens_per_s": (80, "vllm:generation_tokens_total"),
            # Half the tokens took longer than the last bound: the 99th percentile is at least that.
            "itl_p50_s": (0.05, OLD_ITL),
            "itl_p99_s": (0.05, OLD_ITL + BEYOND),
            "itl_mean_s": (0.05, OLD_ITL),
        },
    )
    assert readings.settings["sliding_window"] == "4096"
