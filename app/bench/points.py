"""One run of a benchmark tool, in SI units, and nothing of who ran it where."""

from dataclasses import dataclass
from enum import StrEnum

MOST_POINTS = 500
TOO_MANY = f"It holds more than the {MOST_POINTS} runs that are read at a time."


class BenchError(ValueError):
    """What is wrong with a file of results, in words fit for the person who brought it. Never repeats a value."""


class Tool(StrEnum):
    """Whose results are read."""

    VLLM = "vllm bench serve"
    SGLANG = "SGLang bench_serving"
    GUIDELLM = "GuideLLM"
    AIPERF = "AIPerf"
    GENAI_PERF = "GenAI-Perf"
    LLAMA_BENCH = "llama-bench"


@dataclass(frozen=True, slots=True)
class Spread:
    """A time over the requests of a run, in seconds; None where the tool did not say."""

    mean_s: float | None = None
    median_s: float | None = None
    p99_s: float | None = None

    @property
    def typical_s(self) -> float | None:
        """The median, else the mean: a few slow requests at the start of a run move the one less than the other."""
        return self.mean_s if self.median_s is None else self.median_s

    @property
    def average_s(self) -> float | None:
        """The mean, else the median: what Little's law is about."""
        return self.median_s if self.mean_s is None else self.mean_s


NOT_TOLD = Spread()


@dataclass(frozen=True, slots=True)
class BarePass:
    """What llama-bench times: a prompt of `prompt_tokens`, or `generated_tokens` one after the other, or both, behind
    `depth_tokens` that the cache holds already. One sequence, no server; `tokens_per_s` is of both together.
    `gpu_layers` is how many layers were asked to lie on the GPU; None where all, or it is not told.
    """

    prompt_tokens: int
    generated_tokens: int
    depth_tokens: int
    tokens_per_s: float
    batch_tokens: int | None = None
    gpu_layers: int | None = None


@dataclass(frozen=True, slots=True)
class BenchPoint:
    """One run. Times are of requests that were completed; a rate is of the whole deployment.

    Attributes:
        tool: whose result it is.
        model: as the tool names it, without folders.
        backend: kind of endpoint or of build, as the tool names it.
        concurrency: requests that the tool kept running, where it was told how many.
        mean_concurrency: requests that ran on average, where the tool counted them.
        request_rate_per_s: at which requests were sent, where they were sent at a rate.
        requests: those that were completed.
        failed: those that were not, where the tool counted them.
        requests_per_s: completed in a second.
        duration_s: of the run.
        prompt_tokens: of a prompt, on average.
        output_tokens: of an answer, on average.
        ttft: time to the first token.
        tpot: time per output token after the first, of a request as a whole.
        itl: time between two chunks of a stream.
        latency: from sending to the last token.
        output_tokens_per_s: generated.
        total_tokens_per_s: read and generated.
        step_tokens: that a step gave on average, where the server drafted ahead (speculative decoding).
        bare: what llama-bench timed; it serves nobody, and the rest is empty.
        unusable: why the run is compared with nothing; None where it is.
    """

    tool: Tool
    model: str | None = None
    backend: str | None = None
    concurrency: int | None = None
    mean_concurrency: float | None = None
    request_rate_per_s: float | None = None
    requests: int | None = None
    failed: int | None = None
    requests_per_s: float | None = None
    duration_s: float | None = None
    prompt_tokens: float | None = None
    output_tokens: float | None = None
    ttft: Spread = NOT_TOLD
    tpot: Spread = NOT_TOLD
    itl: Spread = NOT_TOLD
    latency: Spread = NOT_TOLD
    output_tokens_per_s: float | None = None
    total_tokens_per_s: float | None = None
    step_tokens: float | None = None
    bare: BarePass | None = None
    unusable: str | None = None
