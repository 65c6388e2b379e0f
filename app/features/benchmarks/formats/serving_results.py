"""Results of `vllm bench serve` (`--save-result`, `--append-result`) and of SGLang's `bench_serving`.

Both grew from one script: a flat object a run, times in milliseconds under `mean_…`, `median_…` and `p99_…`. What they
keep of single requests (texts, lengths, gaps) is left behind here.
"""

from app.features.benchmarks.points import BenchPoint, Fields, Spread, Tool, first, kind_name, model_name, per

NOTHING_COMPLETED = "no request was completed"
NOT_COUNTED = "how many requests were completed is not told"


def is_vllm(values: dict[str, object]) -> bool:
    """Whether an object is a result of `vllm bench serve`."""
    return "total_token_throughput" in values and "request_throughput" in values


def is_sglang(values: dict[str, object]) -> bool:
    """Whether an object is a result of SGLang's `bench_serving`."""
    return "mean_e2e_latency_ms" in values and "request_throughput" in values


def vllm_point(values: dict[str, object], where: str) -> BenchPoint:
    """A run of `vllm bench serve`. Latency is told only where `--percentile-metrics` asked for it.

    Raises:
        BenchError: a figure is no measurement; says which.
    """
    fields = Fields(values, where)
    return _point(
        fields,
        Tool.VLLM,
        name=values.get("model_id"),
        latency=fields.spread("mean_e2el_ms", "median_e2el_ms", "p99_e2el_ms"),
        mean_concurrency=None,
        total=fields.number("total_token_throughput"),
    )


def sglang_point(values: dict[str, object], where: str) -> BenchPoint:
    """A run of SGLang's `bench_serving`, which counts how many requests ran on average.

    Raises:
        BenchError: a figure is no measurement; says which.
    """
    fields = Fields(values, where)
    read, written = fields.number("input_throughput"), fields.number("output_throughput")
    return _point(
        fields,
        Tool.SGLANG,
        name=first((values.get("model"), fields.part("server_info").values.get("model_path"))),
        latency=fields.spread("mean_e2e_latency_ms", "median_e2e_latency_ms", "p99_e2e_latency_ms"),
        mean_concurrency=fields.number("concurrency"),
        total=fields.number("total_throughput") or (read + written if read and written else None),
    )


def _point(
    fields: Fields, tool: Tool, *, name: object, latency: Spread, mean_concurrency: float | None, total: float | None
) -> BenchPoint:
    completed = fields.whole("completed")
    return BenchPoint(
        tool=tool,
        model=model_name(name),
        backend=kind_name(fields.values.get("backend")),
        concurrency=fields.whole("max_concurrency"),
        mean_concurrency=mean_concurrency,
        request_rate_per_s=fields.rate("request_rate"),
        requests=completed,
        failed=fields.whole("failed"),
        requests_per_s=fields.number("request_throughput"),
        duration_s=fields.number("duration"),
        prompt_tokens=per(fields.number("total_input_tokens"), completed),
        output_tokens=per(fields.number("total_output_tokens"), completed),
        ttft=fields.spread("mean_ttft_ms", "median_ttft_ms", "p99_ttft_ms"),
        tpot=fields.spread("mean_tpot_ms", "median_tpot_ms", "p99_tpot_ms"),
        itl=fields.spread("mean_itl_ms", "median_itl_ms", "p99_itl_ms"),
        latency=latency,
        output_tokens_per_s=fields.number("output_throughput"),
        total_tokens_per_s=total,
        step_tokens=fields.number("spec_decode_acceptance_length") or fields.number("accept_length"),
        unusable=None if completed else NOT_COUNTED if fields.values.get("completed") is None else NOTHING_COMPLETED,
    )
