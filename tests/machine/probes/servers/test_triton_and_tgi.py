"""Triton with the TensorRT-LLM backend, and Text Generation Inference; two releases each."""

from tests.machine.probes.servers.recorded import after_two_scrapes, check, seen

BLOCKS = "nv_trt_llm_kv_cache_block_metrics{{kv_cache_block_type={}}}"
USED, MOST, TOKENS_PER = (BLOCKS.format(kind) for kind in ("used", "max", "tokens_per"))


def test_triton_of_2025() -> None:
    readings = seen(after_two_scrapes("triton-2025.prom"))
    assert readings.kind == "triton"
    first_response = "nv_inference_first_response_histogram_ms{model=tensorrt_llm}"
    check(
        readings,
        {
            "running": (32, "nv_trt_llm_request_metrics{request_type=scheduled}"),
            "waiting": (7, "nv_trt_llm_request_metrics{request_type=waiting}"),
            "kv_cache_usage": (0.25, BLOCKS.format("fraction")),
            "kv_capacity_tokens": (384_000, f"{MOST} × {TOKENS_PER}"),
            # Fifty requests went through three models each: counted once.
            "requests_per_s": (5, "nv_inference_request_success{model=ensemble}"),
            "prompt_tokens_per_s": (3000, "nv_llm_input_token_len_sum"),
            "output_tokens_per_s": (1000, "nv_llm_output_token_len_sum"),
            "mean_prompt_tokens": (600, "nv_llm_input_token_len"),
            "mean_output_tokens": (200, "nv_llm_output_token_len"),
            "ttft_p50_s": (0.5, first_response),
            "ttft_p99_s": (1.97, first_response),
            "ttft_mean_s": (0.5, first_response),
        },
    )
    assert dict(readings.settings) == {"block_size": "64", "num_gpu_blocks": "6000", "max_batch_size": "512"}


def test_triton_of_2024() -> None:
    check(
        seen(after_two_scrapes("triton-2024.prom")),
        {
            "running": (5, "nv_trt_llm_request_metrics{request_type=active}"),
            "waiting": (3, "nv_inference_pending_request_count"),
            "kv_cache_usage": (0.125, f"{USED} ÷ {MOST}"),
            "kv_capacity_tokens": (6240 * 64, f"{MOST} × {TOKENS_PER}"),
            "requests_per_s": (2, "nv_inference_request_success{model=tensorrt_llm_bls}"),
        },
    )


def test_tgi_3() -> None:
    readings = seen(after_two_scrapes("tgi-3.prom"))
    assert readings.kind == "tgi"
    itl = "tgi_request_mean_time_per_token_duration"
    check(
        readings,
        {
            "running": (16, "tgi_batch_current_size"),
            "waiting": (4, "tgi_queue_size"),
            "kv_cache_usage": (0.25, "tgi_batch_current_max_tokens ÷ tgi_batch_max_total_tokens"),
            "kv_capacity_tokens": (96_000, "tgi_batch_max_total_tokens"),
            "requests_per_s": (2.5, "tgi_request_success"),
            "prompt_tokens_per_s": (1000, "tgi_request_input_length_sum"),
            "output_tokens_per_s": (250, "tgi_request_generated_tokens_sum"),
            "mean_prompt_tokens": (400, "tgi_request_input_length"),
            "mean_output_tokens": (100, "tgi_request_generated_tokens"),
            "itl_p50_s": (0.025, itl),
            "itl_p99_s": (0.0299, itl),
            "itl_mean_s": (0.025, itl),
            "latency_p50_s": (1.25, "tgi_request_duration"),
            "latency_p99_s": (2.475, "tgi_request_duration"),
            "queue_p50_s": (0.015, "tgi_request_queue_duration"),
        },
    )


def test_summaries_of_tgi_1_have_means_and_no_quantiles() -> None:
    # A summary's quantiles are of the whole life of the server, not of the window.
    check(
        seen(after_two_scrapes("tgi-1.prom")),
        {
            "running": (2, "tgi_batch_current_size"),
            "waiting": (0, "tgi_queue_size"),
            "requests_per_s": (0.2, "tgi_request_count"),
            "output_tokens_per_s": (20, "tgi_request_generated_tokens_sum"),
            "mean_output_tokens": (100, "tgi_request_generated_tokens"),
        },
    )
