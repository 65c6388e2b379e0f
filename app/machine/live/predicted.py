"""How much of the roofs a running server uses: memory bandwidth (MBU) and arithmetic (MFU), measured and predicted.

What is measured comes from the best source there is: the server's own estimates of FLOP and bytes, the card's counters,
or the tokens that came, each with the FLOP and bytes that this product counts for one. Which it was is always told.

Each figure of a running server with the prediction of the same scenario beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.evaluate import Evaluation
from app.calc.measure import replica_batch
from app.calc.outputs import output_at
from app.calc.time.operators import decode_operators
from app.calc.time.phase import phase_cost
from app.calc.time.serving import Estimate
from app.machine.probes.accelerator import CardReadings
from app.machine.probes.reading import Absence, Reading
from app.machine.probes.servers.readings import ServerReadings
from app.scenario.answer import Answer

COUNTED = "tokens × counted per token"
_OWN = "the server's own estimate"
OF_ALL = "The mean of all cards of this machine, whoever they work for."
UNCOUNTED = "Once a model and a card are known, it is counted from the tokens."
DRAM, TENSOR = "DRAM activity of the cards", "tensor activity of the cards"


@dataclass(frozen=True, slots=True)
class Used:
    """A share of a roof (0 to 1), and what is to be known of where it comes from."""

    reading: Reading[float]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Flow:
    """FLOP and bytes a second of one GPU, and where each comes from."""

    flops_per_s: float
    bytes_per_s: float
    flops_from: str
    bytes_from: str

    @property
    def read_from(self) -> str:
        return self.flops_from if self.flops_from == self.bytes_from else f"{self.flops_from}, {self.bytes_from}"


def server_flow(server: ServerReadings) -> Flow | None:
    """What the server itself estimates, where it does (vLLM and SGLang, with their MFU metrics on)."""
    flops, moved = server.flops_per_s.value, server.bytes_per_s.value
    if not flops or not moved:
        return None
    return Flow(flops, moved, server.flops_per_s.read_from or _OWN, server.bytes_per_s.read_from or _OWN)


def counted_flow(server: ServerReadings, found: Evaluation | None) -> Flow | None:
    """The tokens that the server reports, each with the FLOP and bytes that `found` counts for it on one GPU.

    A decode step of B sequences gives B tokens (more with guesses), so steps a second are output tokens a second ÷
    tokens of a step. Bytes are those of decode alone: prefill adds few, for its weights are read anyway.
    """
    output = server.output_tokens_per_s.value
    if found is None or not output:
        return None
    deployment, measures = found.deployment, found.measures
    per_step = measures.memory.replica_sequences * deployment.tokens_per_step
    if not per_step:
        return None
    steps_per_s = output / deployment.replicas / per_step
    prompts = server.prompt_tokens_per_s.value or 0.0
    ranks = deployment.replicas * deployment.split.data
    prompts_per_s = prompts / deployment.workload.prompt_tokens / ranks
    prefill = _prefill_flops(found) * prompts_per_s
    steps_per_s *= _share_at_work(deployment, measures.memory.replica_sequences)
    decode = measures.decode
    return Flow(scalar(decode.flops) * steps_per_s + prefill, scalar(decode.bytes) * steps_per_s, COUNTED, COUNTED)


def measured_mbu(server: ServerReadings, cards: Sequence[CardReadings], found: Evaluation | None) -> Used:
    """Share of the memory bandwidth that is used, by the best source."""
    flow = server_flow(server)
    if flow is not None and found is not None:
        return _of(flow.bytes_per_s, found.deployment.accelerator.bandwidth_bytes_per_s, flow.bytes_from)
    dram = mean_percent([card.dram_activity_percent for card in cards])
    if dram is not None:
        return Used(Reading(dram / 100, "", read_from=DRAM), OF_ALL)
    counted = counted_flow(server, found)
    if counted is not None and found is not None:
        return _of(counted.bytes_per_s, found.deployment.accelerator.bandwidth_bytes_per_s, counted.bytes_from)
    return _unknown(server, found)


def measured_mfu(server: ServerReadings, cards: Sequence[CardReadings], found: Evaluation | None) -> Used:
    """Share of the matrix rate that is used, by the best source.

    The card's tensor activity comes last: it is the share of cycles in which a tensor pipe was busy, which is more
    than the share of its rate.
    """
    for flow in (server_flow(server), counted_flow(server, found)):
        if flow is not None and found is not None:
            return _of(flow.flops_per_s, _peak(found), flow.flops_from)
    tensor = mean_percent([card.tensor_activity_percent for card in cards])
    if tensor is not None:
        note = "The share of cycles in which a tensor pipe was busy: the share of its rate is at most that."
        return Used(Reading(tensor / 100, "", read_from=TENSOR), note)
    return _unknown(server, found)


def predicted_mbu(found: Evaluation | None) -> Estimate | None:
    """Bytes of a decode step ÷ the time of a step ÷ bandwidth; the interval is that of the time per token."""
    if found is None:
        return None
    _, moved = _step_of_served(found)
    return _rate_of(found, moved / found.deployment.accelerator.bandwidth_bytes_per_s)


def predicted_mfu(found: Evaluation | None) -> Estimate | None:
    """FLOP of decode and of the prefills that keep it fed, a second, ÷ the peak rate."""
    if found is None:
        return None
    deployment = found.deployment
    ranks = deployment.replicas * deployment.split.data
    output, answer = found.measures.serving.output_tokens_per_s, deployment.workload.output_tokens
    computed, _ = _step_of_served(found)
    decode = _rate_of(found, computed / _peak(found))
    prompt = _prefill_flops(found) / _peak(found) / ranks / answer

    def both(of_decode: float | None, rate: float | None) -> float | None:
        return None if of_decode is None or rate is None else min(1.0, of_decode + prompt * rate)

    return Estimate(1.0, both(decode.low, output.low), both(decode.mid, output.mid), both(decode.high, output.high))


def mean_percent(readings: Sequence[Reading[float]]) -> float | None:
    """The mean of those that have a value, in percent."""
    values = [reading.value for reading in readings if reading.value is not None]
    return sum(values) / len(values) if values else None


def _rate_of(found: Evaluation, seconds: float) -> Estimate:
    """The share of each second that `seconds` of a roof's time in each step make, at most all of it."""
    deployment, held = found.deployment, found.measures.memory
    tpot, tokens = found.measures.serving.tpot_s, deployment.tokens_per_step
    at_work = min(1.0, held.served_sequences / deployment.replicas)  # A replica without a request takes no step.
    at_work *= _share_at_work(deployment, replica_batch(deployment, held.served_sequences))

    def share(tpot_s: float | None) -> float | None:
        return None if not tpot_s else min(1.0, at_work * seconds / (tpot_s * tokens))

    return Estimate(1.0, share(tpot.high), share(tpot.mid), share(tpot.low))


def _step_of_served(found: Evaluation) -> tuple[float, float]:
    """FLOP and bytes of a decode step of those who find room, who are those that its time is expected of."""
    deployment, held, step = found.deployment, found.measures.memory, found.measures.decode
    if held.served_sequences != held.running_sequences:
        served = replica_batch(deployment, held.served_sequences)
        operators = decode_operators(deployment, served, deployment.workload.mid_answer_tokens)
        step = phase_cost(operators, deployment.accelerator)
    return scalar(step.flops), scalar(step.bytes)


def _prefill_flops(found: Evaluation) -> float:
    """FLOP of one prompt on one GPU; none where others prefill. A stage of a pipeline has its part of the layers."""
    deployment = found.deployment
    if deployment.prefill_pool is not None:
        return 0.0
    return scalar(found.measures.prefill.flops) / deployment.split.pipeline


def _share_at_work(deployment: Deployment, sequences: int) -> float:
    """The share of a pipeline's stages that have a sequence to work on at a time."""
    stages = deployment.split.pipeline
    return 1.0 if stages == 1 else min(1.0, sequences / deployment.split.data / stages)


def _peak(found: Evaluation) -> float:
    return found.deployment.accelerator.peak(found.deployment.precision.compute)


def _of(rate: float, peak: float, read_from: str) -> Used:
    share = rate / peak
    note = "" if share <= 1 else "More than the card can do: the scenario is another one than what runs."
    return Used(Reading(share, "", read_from=read_from), note)


def _unknown(server: ServerReadings, found: Evaluation | None) -> Used:
    """Why there is no share: no tokens were read, none came, or nothing says how much one takes."""
    output = server.output_tokens_per_s
    if output.value is None:
        return Used(Reading.missing(output.absence or Absence.NOT_REPORTED))
    if found is None and output.value and server.running.value != 0:
        return Used(Reading.missing(Absence.NOT_REPORTED), UNCOUNTED)
    return Used(Reading.missing(Absence.NOTHING_TO_MEASURE))


@dataclass(frozen=True, slots=True)
class Beside:
    """One figure. `measured` is a reading, with the name it was read from; `predicted` has what was computed, None
    where nothing is (a share of a bound, a quantile). `ratio` is measured ÷ predicted, `inside` whether the measurement
    lies in the interval, None where there is none.
    """

    id: str
    label: str
    unit: str
    measured: Reading[float]
    predicted: Estimate | None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Measured ÷ predicted middle."""
        middle = None if self.predicted is None else self.predicted.mid
        return None if self.measured.value is None or not middle else self.measured.value / middle

    @property
    def inside(self) -> bool | None:
        """Whether the measurement lies in the interval."""
        if self.measured.value is None or self.predicted is None:
            return None
        low, high = self.predicted.low, self.predicted.high
        return None if low is None or high is None else low <= self.measured.value <= high

    def document(self) -> dict[str, object]:
        level = self.predicted
        predicted = None if level is None else levels_of(level)
        return {
            "id": self.id,
            "label": self.label,
            "unit": self.unit,
            "measured": self.measured.document(),
            "predicted": predicted,
            "ratio": self.ratio,
            "inside": self.inside,
            "note": self.note,
        }


def levels_of(level: Estimate) -> dict[str, float | None]:
    """The JSON-ready form of a figure at its levels."""
    return {"ceiling": level.ceiling, "low": level.low, "mid": level.mid, "high": level.high}


def beside(server: ServerReadings, cards: Sequence[CardReadings], answered: Answer | None) -> list[Beside]:
    """The figures of `server`, in the order of the page; without an `answered` scenario each stands alone."""
    found = answered.evaluation if answered is not None else None
    capacity = _whole(server.kv_capacity_tokens)
    return [
        _row("output_tokens_per_s", _OUTPUT, "", server.output_tokens_per_s, _beside_of(found, _OUTPUT)),
        Beside("prompt_tokens_per_s", "Prefill throughput", "tokens/s", server.prompt_tokens_per_s, _prompts(found)),
        _row("ttft_p50_s", _TTFT, ", median", server.ttft_p50_s, _beside_of(found, _TTFT)),
        _row("ttft_p99_s", _TTFT, ", 99th of 100", server.ttft_p99_s, None),
        Beside("itl_p50_s", f"{_ITL}, median", "s", server.itl_p50_s, None, _MEDIAN),
        Beside("itl_p99_s", f"{_ITL}, 99th of 100", "s", server.itl_p99_s, None),
        Beside("itl_mean_s", f"{_ITL}, mean", "s", server.itl_mean_s, _beside_of(found, "serving.tpot_s")),
        _row("latency_p50_s", _LATENCY, ", median", server.latency_p50_s, _beside_of(found, _LATENCY)),
        Beside("kv_cache_usage", "KV cache usage", "", server.kv_cache_usage, _usage(found)),
        _row("kv_capacity_tokens", "memory.kv_pool_tokens", ", all ranks", capacity, _capacity(found)),
        _share("mbu", "Memory bandwidth used (MBU)", measured_mbu(server, cards, found), predicted_mbu(found)),
        _share("mfu", "Arithmetic used (MFU)", measured_mfu(server, cards, found), predicted_mfu(found)),
    ]


def _share(id_: str, label: str, used: Used, predicted: Estimate | None) -> Beside:
    return Beside(id_, label, "", used.reading, predicted, used.note)


_MEDIAN = "The prediction is of the mean: prefills of others hold up some tokens and not most."


_OUTPUT, _TTFT, _LATENCY = "serving.output_tokens_per_s", "serving.ttft_s", "serving.total_latency_s"
_ITL = "Inter-token latency (ITL)"


def _row(id_: str, path: str, which: str, measured: Reading[float], predicted: Estimate | None) -> Beside:
    """A figure that is measured of the output at `path`: its name, and which of the requests it is of."""
    output = output_at(path)
    return Beside(id_, f"{output.label}{which}", output.unit.value, measured, predicted)


def _beside_of(found: Evaluation | None, path: str) -> Estimate | None:
    value = None if found is None else output_at(path).of(found)
    return value if isinstance(value, Estimate) else None


def _whole(reading: Reading[int]) -> Reading[float]:
    value = None if reading.value is None else float(reading.value)
    return Reading(value, reading.unit, reading.absence, reading.read_from)


def _prompts(found: Evaluation | None) -> Estimate | None:
    """Prompt tokens a second: those of as many requests as give the output tokens."""
    if found is None:
        return None
    workload, output = found.deployment.workload, found.measures.serving.output_tokens_per_s
    return _times(output, workload.prompt_tokens / workload.output_tokens)


def _times(level: Estimate, factor: float) -> Estimate:
    def scaled(value: float | None) -> float | None:
        return None if value is None else value * factor

    return Estimate(level.ceiling * factor, scaled(level.low), scaled(level.mid), scaled(level.high))


def _usage(found: Evaluation | None) -> Estimate | None:
    """The share that the running sequences take in mid-answer: counted, so without an interval."""
    if found is None:
        return None
    held, workload = found.measures.memory, found.deployment.workload
    if not held.max_concurrency:
        return None
    filled = workload.mid_answer_tokens / workload.total_tokens
    share = min(1.0, min(held.running_sequences, held.max_concurrency) / held.max_concurrency * filled)
    return Estimate(1.0, None, share, None)


def _capacity(found: Evaluation | None) -> Estimate | None:
    """Tokens of all ranks and replicas; the engine's log prints those of one rank."""
    if found is None or not found.measures.memory.kv_pool_tokens:
        return None
    held, ranks = found.measures.memory, found.deployment.split.data * found.deployment.replicas
    low, high = (float(ranks * tokens) for tokens in held.kv_pool_tokens_interval)
    return Estimate(high, low, float(ranks * held.kv_pool_tokens), high)
