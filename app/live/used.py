"""How much of the roofs a running server uses: memory bandwidth (MBU) and arithmetic (MFU), measured and predicted.

What is measured comes from the best source there is: the server's own estimates of FLOP and bytes, the card's counters,
or the tokens that came, each with the FLOP and bytes that this product counts for one. Which it was is always told.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.calc.broadcast import scalar
from app.calc.evaluation import Evaluation
from app.calc.serving import Estimate
from app.probes.card import CardReadings
from app.probes.reading import Absence, Reading
from app.probes.servers.readings import ServerReadings

COUNTED = "tokens × counted per token"
DRAM, TENSOR = "DRAM activity of the cards", "tensor activity of the cards"


@dataclass(frozen=True, slots=True)
class Used:
    """A share of a roof (0 to 1), and what is to be known of where it comes from."""

    reading: Reading[float]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Flow:
    """FLOP and bytes a second of one GPU, and where they come from."""

    flops_per_s: float
    bytes_per_s: float
    read_from: str


def server_flow(server: ServerReadings) -> Flow | None:
    """What the server itself estimates, where it does (vLLM and SGLang, with their MFU metrics on)."""
    flops, moved = server.flops_per_s.value, server.bytes_per_s.value
    if not flops or not moved:
        return None
    return Flow(flops, moved, server.flops_per_s.read_from or "the server's own estimate")


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
    prefill = 0.0 if deployment.prefill_pool is not None else scalar(measures.prefill.flops) * prompts_per_s
    return Flow(
        scalar(measures.decode.flops) * steps_per_s + prefill, scalar(measures.decode.bytes) * steps_per_s, COUNTED
    )


def measured_mbu(server: ServerReadings, cards: Sequence[CardReadings], found: Evaluation | None) -> Used:
    """Share of the memory bandwidth that is used, by the best source."""
    flow = server_flow(server)
    if flow is not None and found is not None:
        return _of(flow.bytes_per_s, found.deployment.accelerator.bandwidth_bytes_per_s, flow)
    dram = mean_percent([card.dram_activity_percent for card in cards])
    if dram is not None:
        return Used(Reading(dram / 100, "", read_from=DRAM))
    counted = counted_flow(server, found)
    if counted is not None and found is not None:
        return _of(counted.bytes_per_s, found.deployment.accelerator.bandwidth_bytes_per_s, counted)
    return Used(Reading.missing(_why_not(server, found)))


def measured_mfu(server: ServerReadings, cards: Sequence[CardReadings], found: Evaluation | None) -> Used:
    """Share of the matrix rate that is used, by the best source.

    The card's tensor activity comes last: it is the share of cycles in which a tensor pipe was busy, which is more
    than the share of its rate.
    """
    for flow in (server_flow(server), counted_flow(server, found)):
        if flow is not None and found is not None:
            return _of(flow.flops_per_s, _peak(found), flow)
    tensor = mean_percent([card.tensor_activity_percent for card in cards])
    if tensor is not None:
        note = "The share of cycles in which a tensor pipe was busy: the share of its rate is at most that."
        return Used(Reading(tensor / 100, "", read_from=TENSOR), note)
    return Used(Reading.missing(_why_not(server, found)))


def predicted_mbu(found: Evaluation | None) -> Estimate | None:
    """Bytes of a decode step ÷ the time of a step ÷ bandwidth; the interval is that of the time per token."""
    if found is None:
        return None
    moved = scalar(found.measures.decode.bytes) / found.deployment.accelerator.bandwidth_bytes_per_s
    return _rate_of(found, moved)


def predicted_mfu(found: Evaluation | None) -> Estimate | None:
    """FLOP of decode and of the prefills that keep it fed, a second, ÷ the peak rate."""
    if found is None:
        return None
    deployment, measures = found.deployment, found.measures
    ranks = deployment.replicas * deployment.split.data
    output, answer = measures.serving.output_tokens_per_s, deployment.workload.output_tokens
    decode = _rate_of(found, scalar(measures.decode.flops) / _peak(found))
    prompt = (
        0.0 if deployment.prefill_pool is not None else scalar(measures.prefill.flops) / _peak(found) / ranks / answer
    )

    def both(of_decode: float | None, rate: float | None) -> float | None:
        return None if of_decode is None or rate is None else min(1.0, of_decode + prompt * rate)

    return Estimate(1.0, both(decode.low, output.low), both(decode.mid, output.mid), both(decode.high, output.high))


def mean_percent(readings: Sequence[Reading[float]]) -> float | None:
    """The mean of those that have a value, in percent."""
    values = [reading.value for reading in readings if reading.value is not None]
    return sum(values) / len(values) if values else None


def _rate_of(found: Evaluation, seconds: float) -> Estimate:
    """The share of each second that `seconds` of a roof's time in each step make, at most all of it."""
    tpot, tokens = found.measures.serving.tpot_s, found.deployment.tokens_per_step

    def share(tpot_s: float | None) -> float | None:
        return None if not tpot_s else min(1.0, seconds / (tpot_s * tokens))

    return Estimate(1.0, share(tpot.high), share(tpot.mid), share(tpot.low))


def _peak(found: Evaluation) -> float:
    return found.deployment.accelerator.peak(found.deployment.precision.compute)


def _of(rate: float, peak: float, flow: Flow) -> Used:
    share = rate / peak
    note = "" if share <= 1 else "More than the card can do: the scenario is another one than what runs."
    return Used(Reading(share, "", read_from=flow.read_from), note)


def _why_not(server: ServerReadings, found: Evaluation | None) -> Absence:
    output = server.output_tokens_per_s
    if output.value is None or found is None:
        return output.absence or Absence.NOT_REPORTED
    return Absence.NOTHING_TO_MEASURE
