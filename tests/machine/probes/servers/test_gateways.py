"""What stands in front of engines: Dynamo's frontend and workers, and the endpoint picker with its pools."""

from app.machine.probes.servers.adapters import recognise, wanted_names
from app.machine.probes.servers.exposition import Exposition, read_exposition
from tests.machine.probes.servers.recorded import after_two_scrapes, check, seen, two_scrapes


def test_the_frontend_of_dynamo() -> None:
    readings = seen(after_two_scrapes("dynamo-1.prom"))
    assert readings.kind == "dynamo"
    ttft, itl = "dynamo_frontend_time_to_first_token_seconds", "dynamo_frontend_inter_token_latency_seconds"
    check(
        readings,
        {
            "model_name": ("qwen/qwen3-32b", "model"),
            "running": (20, "dynamo_frontend_inflight_requests"),
            "waiting": (5, "dynamo_frontend_queued_requests"),
            "prefix_hit_rate": (
                0.2,
                "dynamo_frontend_cached_tokens_sum ÷ dynamo_frontend_input_sequence_tokens_sum",
            ),
            "requests_per_s": (3, "dynamo_frontend_requests_total"),
            "prompt_tokens_per_s": (1000, "dynamo_frontend_input_sequence_tokens_sum"),
            "output_tokens_per_s": (500, "dynamo_frontend_output_tokens_total"),
            "mean_prompt_tokens": (500, "dynamo_frontend_input_sequence_tokens"),
            "mean_output_tokens": (300, "dynamo_frontend_output_sequence_tokens"),
            "ttft_p50_s": (0.1, ttft),
            "ttft_p99_s": (0.1 + 0.12 * 0.98, ttft),
            "ttft_mean_s": (0.15, ttft),
            "itl_p50_s": (0.012, itl),
            "itl_p99_s": (0.02376, itl),
            "itl_mean_s": (0.012, itl),
        },
    )
    assert dict(readings.settings) == {"context_len": "40960", "block_size": "16", "num_gpu_blocks": "10000"}


def test_a_worker_of_dynamo() -> None:
    check(
        seen(after_two_scrapes("dynamo-worker.prom")),
        {
            "model_name": ("qwen/qwen3-32b", "model"),
            "running": (6, "dynamo_component_inflight_requests{dynamo_endpoint=generate}"),
            "kv_cache_usage": (0.6, "dynamo_component_gpu_cache_usage_percent"),
            "requests_per_s": (1.5, "dynamo_component_requests_total{dynamo_endpoint=generate}"),
        },
    )


def test_the_first_names_of_dynamo() -> None:
    ttft = "nv_llm_http_service_time_to_first_token_seconds"
    check(
        seen(after_two_scrapes("dynamo-first.prom")),
        {
            "model_name": ("deepseek-ai/DeepSeek-R1", "model"),
            "running": (3, "nv_llm_http_service_inflight_requests"),
            "requests_per_s": (0.5, "nv_llm_http_service_requests_total"),
            "output_tokens_per_s": (100, "nv_llm_http_service_output_sequence_tokens_sum"),
            "mean_output_tokens": (200, "nv_llm_http_service_output_sequence_tokens"),
            "ttft_p50_s": (1.5, ttft),
            "ttft_p99_s": (1.99, ttft),
            "ttft_mean_s": (1.4, ttft),
        },
    )


def test_a_worker_that_passes_its_engines_metrics_on_is_read_as_the_engine() -> None:
    both = two_scrapes("dynamo-worker.prom")[0] + two_scrapes("vllm-0.33.prom")[0]
    exposition = read_exposition(both, wanted_names())
    assert isinstance(exposition, Exposition)
    adapter = recognise(exposition)
    assert adapter is not None
    assert adapter.kind == "vllm"


def test_pools_of_llm_d() -> None:
    snapshot = after_two_scrapes("endpoint-picker-llm-d.prom")
    ttft, itl = "llm_d_epp_request_ttft_seconds", "llm_d_epp_request_streaming_itl_seconds"
    assert seen(snapshot).kind == "endpoint-picker"
    check(
        seen(snapshot),
        {
            "model_name": ("llama", "model_name"),
            # Averages over the servers of a pool, times the servers that are ready: 4 × 10.5 + 2 × 2.
            "running": (46, "llm_d_epp_average_running_requests × llm_d_epp_ready_endpoints"),
            "waiting": (6, "llm_d_epp_average_queue_size × llm_d_epp_ready_endpoints"),
            "kv_cache_usage": (0.5, "llm_d_epp_average_kv_cache_utilization"),
            "prefix_hit_rate": (0.25, "llm_d_epp_request_cached_tokens_sum ÷ llm_d_epp_request_input_tokens_sum"),
            "requests_per_s": (3, "llm_d_epp_request_total"),
            "prompt_tokens_per_s": (800, "llm_d_epp_request_input_tokens_sum"),
            "mean_prompt_tokens": (400, "llm_d_epp_request_input_tokens"),
            "ttft_p50_s": (0.5, ttft),
            "ttft_p99_s": (0.99, ttft),
            "ttft_mean_s": (0.5, ttft),
            "itl_p50_s": (0.025, itl),
            "itl_p99_s": (0.0495, itl),
            "itl_mean_s": (0.025, itl),
        },
    )
    assert snapshot.driver_version.value == "v0.8.1"


def test_the_picker_before_it_was_renamed() -> None:
    readings = seen(after_two_scrapes("endpoint-picker-1.0.prom"))
    latency = "inference_objective_request_duration_seconds"
    check(
        readings,
        {
            "model_name": ("food-review", "model_name"),
            "running": (11, "inference_objective_running_requests"),
            "waiting": (5, "inference_pool_average_queue_size × inference_pool_ready_pods"),
            "kv_cache_usage": (0.55, "inference_pool_average_kv_cache_utilization"),
            "requests_per_s": (2, "inference_objective_request_total"),
            "prompt_tokens_per_s": (50, "inference_objective_input_tokens_sum"),
            "mean_prompt_tokens": (25, "inference_objective_input_tokens"),
            "latency_p50_s": (1.5, latency),
            "latency_p99_s": (1.99, latency),
        },
    )
    assert dict(readings.settings) == {"ready_pods": "2"}


def test_the_first_names_of_the_picker() -> None:
    check(
        seen(after_two_scrapes("endpoint-picker-0.3.prom")),
        {
            "model_name": ("food-review", "model_name"),
            "running": (4, "inference_model_running_requests"),
            "waiting": (3, "inference_pool_average_queue_size × inference_pool_ready_pods"),
            "kv_cache_usage": (0.2, "inference_pool_average_kv_cache_utilization"),
            "requests_per_s": (0.5, "inference_model_request_total"),
            "output_tokens_per_s": (10, "inference_model_output_tokens_sum"),
            "mean_output_tokens": (20, "inference_model_output_tokens"),
        },
    )
