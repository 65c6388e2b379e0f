"""What a probe says of one inference server."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.machine.probes.accelerator import BYTES, BYTES_PER_SECOND
from app.machine.probes.reading import Absence, Reading, in_unit, units_of

SECONDS, TOKENS, TOKENS_PER_SECOND, PER_SECOND, FLOPS_PER_SECOND = "s", "tokens", "tokens/s", "1/s", "FLOP/s"


@dataclass(frozen=True, slots=True)
class ServerReadings:
    """One server at one instant; every reading has a value, or says why not, and names the metric it was read from.

    `kind` is that of the adapter ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "triton", "tgi", "dynamo",
    "endpoint-picker"). `settings` are the labels with which the server describes its own cache and configuration.
    Rates, means and quantiles are those of the `window_s` seconds between the two samples that they were read from: of
    the requests that finished, or the tokens that came, in that time. Gauges are of the instant. Counts are of the
    whole server (all its engines or data-parallel ranks); `kv_cache_usage` is a share (0 to 1), weighted by capacity.
    The estimates of FLOP and bytes are the server's own, of one GPU; so is `kv_pool_bytes`. Where a figure is made of
    several, `read_from` says how ("num_gpu_blocks × block_size").
    """

    kind: str
    window_s: float | None
    settings: Mapping[str, str]
    model_name: Reading[str] = in_unit("")
    running: Reading[float] = in_unit("")
    waiting: Reading[float] = in_unit("")
    kv_cache_usage: Reading[float] = in_unit("")
    kv_capacity_tokens: Reading[int] = in_unit(TOKENS)
    kv_pool_bytes: Reading[int] = in_unit(BYTES)
    prefix_hit_rate: Reading[float] = in_unit("")
    preemptions_per_s: Reading[float] = in_unit(PER_SECOND)
    requests_per_s: Reading[float] = in_unit(PER_SECOND)
    prompt_tokens_per_s: Reading[float] = in_unit(TOKENS_PER_SECOND)
    output_tokens_per_s: Reading[float] = in_unit(TOKENS_PER_SECOND)
    mean_prompt_tokens: Reading[float] = in_unit(TOKENS)
    mean_output_tokens: Reading[float] = in_unit(TOKENS)
    ttft_p50_s: Reading[float] = in_unit(SECONDS)
    ttft_p99_s: Reading[float] = in_unit(SECONDS)
    ttft_mean_s: Reading[float] = in_unit(SECONDS)
    itl_p50_s: Reading[float] = in_unit(SECONDS)
    itl_p99_s: Reading[float] = in_unit(SECONDS)
    itl_mean_s: Reading[float] = in_unit(SECONDS)
    latency_p50_s: Reading[float] = in_unit(SECONDS)
    latency_p99_s: Reading[float] = in_unit(SECONDS)
    queue_p50_s: Reading[float] = in_unit(SECONDS)
    tokens_per_step: Reading[float] = in_unit(TOKENS)
    flops_per_s: Reading[float] = in_unit(FLOPS_PER_SECOND)
    bytes_per_s: Reading[float] = in_unit(BYTES_PER_SECOND)

    @classmethod
    def of(
        cls,
        kind: str,
        otherwise: Absence = Absence.NOT_REPORTED,
        *,
        window_s: float | None = None,
        settings: Mapping[str, str] | None = None,
        **readings: Reading[Any],
    ) -> "ServerReadings":
        """A server with the `readings` that there are, by field; what is not given is missing for `otherwise`."""
        missing: dict[str, Any] = {
            name: Reading.missing(otherwise, unit) for name, unit in units_of(cls).items() if name not in readings
        }
        return cls(kind=kind, window_s=window_s, settings=settings or {}, **readings, **missing)

    def document(self) -> dict[str, object]:
        readings = {name: getattr(self, name).document() for name in units_of(ServerReadings)}
        return {"kind": self.kind, "window_s": self.window_s, "settings": dict(self.settings), **readings}
