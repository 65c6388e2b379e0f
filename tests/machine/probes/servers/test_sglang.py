"""SGLang: three generations of names; ranks that say the same, priorities and sources that are parts of a total."""

from tests.machine.probes.servers.recorded import after_two_scrapes, check, seen

TTFT, ITL = "sglang:time_to_first_token_seconds", "sglang:inter_token_latency_seconds"
OLD_ITL = "sglang:time_per_output_token_seconds"


def test_tensor_ranks_are_read_once_and_data_ranks_are_added() -> None:
    readings = seen(after_two_scrapes("sglang-0.5.prom"))
    assert readings.kind == "sglang"
    check(
        readings,
        {
            "model_name": ("Qwen/Qwen3-32B", "model_name"),
            "running": (10, "sglang:num_running_reqs"),
            "waiting": (2, "sglang:num_queue_reqs"),
            "kv_cache_usage": (0.5, "sglang:token_usage"),
            "kv_capacity_tokens": (200_000, "sglang:max_total_num_tokens"),
            "kv_pool_bytes": (24.5 * 2**30, "sglang:kv_cache_memory_usage_gb"),
            "prefix_hit_rate": (0.25, "sglang:cached_tokens_total ÷ sglang:prompt_tokens_total"),
            "preemptions_per_s": (0.8, "sglang:num_retracted_requests_total"),
            "requests_per_s": (2, "sglang:num_requests_total"),
            "prompt_tokens_per_s": (2000, "sglang:prompt_tokens_total"),
            "output_tokens_per_s": (700, "sglang:realtime_tokens_total{mode=decode}"),
            "mean_prompt_tokens": (1000, "sglang:prompt_tokens_total ÷ sglang:num_requests_total"),
            "mean_output_tokens": (300, "sglang:generation_tokens_total ÷ sglang:num_requests_total"),
            "ttft_p50_s": (0.3, TTFT),
            "ttft_p99_s": (0.79, TTFT),
            "ttft_mean_s": (0.4, TTFT),
            "itl_p50_s": (0.01, ITL),
            "itl_p99_s": (0.0198, ITL),
            "itl_mean_s": (0.02, ITL),
            "queue_p50_s": (0.05, "sglang:queue_time_seconds"),
            "flops_per_s": (4e14, "sglang:estimated_flops_per_gpu_total"),
            "bytes_per_s": (
                1.1e12,
                "sglang:estimated_read_bytes_per_gpu_total + sglang:estimated_write_bytes_per_gpu_total",
            ),
        },
    )
    assert dict(readings.settings) == {"page_size": "64", "context_len": "40960"}


def test_the_names_of_0_4() -> None:
    readings = seen(after_two_scrapes("sglang-0.4.prom"))
    check(
        readings,
        {
            "model_name": ("deepseek-ai/DeepSeek-V3", "model_name"),
            "running": (9, "sglang:num_running_reqs"),
            "waiting": (1, "sglang:num_queue_reqs"),
            "kv_cache_usage": (0.03, "sglang:token_usage"),
            "kv_capacity_tokens": (192_000, "num_pages × page_size"),
            "prefix_hit_rate": (0.25, "sglang:cached_tokens_total ÷ sglang:prompt_tokens_total"),
            "requests_per_s": (0.5, "sglang:num_requests_total"),
            "prompt_tokens_per_s": (100, "sglang:prompt_tokens_total"),
            "output_tokens_per_s": (200, "sglang:generation_tokens_total"),
            "mean_prompt_tokens": (200, "sglang:prompt_tokens_total ÷ sglang:num_requests_total"),
            "mean_output_tokens": (400, "sglang:generation_tokens_total ÷ sglang:num_requests_total"),
            "latency_p50_s": (8, "sglang:e2e_request_latency_seconds"),
            "latency_p99_s": (9.96, "sglang:e2e_request_latency_seconds"),
        },
    )
    assert dict(readings.settings) == {"page_size": "64", "num_pages": "3000"}


def test_the_names_of_the_first_release_with_metrics() -> None:
    readings = seen(after_two_scrapes("sglang-first.prom"))
    check(
        readings,
        {
            "model_name": ("google/gemma-2-9b-it", "name"),
            "running": (3, "sglang:num_requests_running"),
            "waiting": (2, "sglang:num_requests_waiting"),
            "kv_cache_usage": (0.01, "sglang:token_usage"),
            "kv_capacity_tokens": (161_721, "sglang:max_total_num_tokens"),
            "prompt_tokens_per_s": (100, "sglang:prompt_tokens_total"),
            "output_tokens_per_s": (100, "sglang:generation_tokens_total"),
            "mean_prompt_tokens": (200, "sglang:request_prompt_tokens"),
            "itl_p50_s": (0.045, OLD_ITL),
            "itl_p99_s": (0.0499, OLD_ITL),
            "itl_mean_s": (0.05, OLD_ITL),
            "queue_p50_s": (0.5, "sglang:waiting_request_latency_seconds"),
        },
    )
