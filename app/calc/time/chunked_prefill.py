"""Chunked prefill: a prompt cut into steps that also carry everybody else's next token.

A step has room for a budget of tokens: those that decode come first, a chunk of the prompt fills the rest. A running
stream then waits for one chunk and not for a whole prompt; the prompt waits for as many steps as it has chunks.
Source: Agrawal et al., "Taming throughput-latency tradeoff in LLM inference with Sarathi-Serve", OSDI 2024.
"""

from dataclasses import dataclass, replace

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.measure import Measures
from app.calc.time.expected.timing import alone_s, efficiency_of, prompt_time
from app.calc.time.operators import prefill_operators
from app.calc.time.phase import phase_cost


@dataclass(frozen=True, slots=True)
class Chunked:
    """One prompt that comes while others decode. `chunk_tokens` of it in each of `chunks` steps.

    `pause_s` is the longest that a running stream waits for its next token, `first_s` what the prompt waits for its
    first; at the ceiling, and as expected (None where nothing is calibrated). `read_bytes` are what its chunks read of
    weights and of its own cache, on one GPU.
    """

    budget_tokens: int
    chunk_tokens: int
    chunks: int
    pause_ceiling_s: float
    pause_s: float | None
    first_ceiling_s: float
    first_s: float | None
    read_bytes: float

    @property
    def best_pause_s(self) -> float:
        """As expected, or at the ceiling."""
        return self.pause_ceiling_s if self.pause_s is None else self.pause_s

    @property
    def best_first_s(self) -> float:
        """As expected, or at the ceiling."""
        return self.first_ceiling_s if self.first_s is None else self.first_s


def chunked(deployment: Deployment, measures: Measures, budget_tokens: int | None) -> Chunked:
    """A prompt beside the running batch, in steps of so many tokens; None prefills it whole, in a step of its own.

    Ceilings: a step takes at least its decoding, and at least the arithmetic of its chunk. Expected: decoding, and what
    the chunk's arithmetic adds to it. A chunk is told as an even part of the prompt: the last one attends to more.
    """
    workload, batch = deployment.workload, measures.memory.rank_sequences
    new = workload.prompt_tokens - workload.cached_prompt_tokens
    chunk = new if budget_tokens is None else max(1, min(new, budget_tokens - batch))
    chunks = -(-new // chunk)
    step = measures.decode.ceiling_s
    whole = _whole(deployment)
    part = whole.compute_s * chunk / new
    pause = max(step, whole.ceiling_s) if chunks == 1 and budget_tokens is None else max(step, part)
    first = whole.ceiling_s if chunks == 1 else max(whole.ceiling_s, chunks * step, whole.compute_s)
    expected = _expected(deployment, measures, chunk, chunks, alone=budget_tokens is None)
    # The weights once a chunk; of its own cache each chunk reads what is before it, which adds up to half of them all.
    weights = measures.memory.per_gpu.weights_bytes
    own = measures.memory.kv_bytes_per_token / deployment.split.tensor
    read = chunks * weights + own * new * (chunks - 1) / 2
    slower = [None if mid is None else max(mid, floor) for mid, floor in zip(expected, (pause, first), strict=True)]
    return Chunked(budget_tokens or new, chunk, chunks, pause, slower[0], first, slower[1], read)


@dataclass(frozen=True, slots=True)
class _Whole:
    ceiling_s: float
    compute_s: float


def _whole(deployment: Deployment) -> _Whole:
    cached = deployment.workload.cached_prompt_tokens
    operators = prefill_operators(deployment, deployment.workload.prompt_tokens - cached, cached)
    cost, stages = phase_cost(operators, deployment.accelerator), deployment.split.pipeline
    return _Whole(cost.ceiling_s / stages, cost.compute_s / stages)


def _expected(
    deployment: Deployment, measures: Measures, chunk: int, chunks: int, *, alone: bool
) -> tuple[float | None, float | None]:
    """The longest pause, and the first token."""
    if deployment.calibration is None or measures.expected is None:
        return None, None
    cached = deployment.workload.cached_prompt_tokens
    new = deployment.workload.prompt_tokens - cached
    cut = replace(deployment, engine=replace(deployment.engine, step_tokens=chunk, chunks_prefill=not alone))
    efficiency = efficiency_of(cut, deployment.calibration)
    time = prompt_time(cut, efficiency, new, cached, 1.0)
    request, step = scalar(efficiency.request_s), scalar(measures.expected.step.total_s)
    if alone:
        whole = scalar(alone_s(cut, time, new, cached))
        return max(whole + step, _whole(deployment).ceiling_s), whole + request
    # Weights are read for the decoding anyway: a chunk adds its arithmetic, at the rate of chunks of its size.
    climb = 1 + scalar(efficiency.prefill_half_tokens) / chunk
    added = scalar(time.marginal_s) * climb / chunks / deployment.split.pipeline
    return step + added, chunks * (step + added) + request
