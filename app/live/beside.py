"""Each figure of a running server with the prediction of the same scenario beside it."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.answer import Answer
from app.calc.evaluation import Evaluation
from app.calc.outputs import output_at
from app.calc.serving import Estimate
from app.live.used import Used, measured_mbu, measured_mfu, predicted_mbu, predicted_mfu
from app.probes.card import CardReadings
from app.probes.reading import Reading
from app.probes.servers.readings import ServerReadings


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
        """The JSON-ready form."""
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
        _row("output_tokens_per_s", _OUTPUT, "", server.output_tokens_per_s, _of(found, _OUTPUT)),
        Beside("prompt_tokens_per_s", "Prefill throughput", "tokens/s", server.prompt_tokens_per_s, _prompts(found)),
        _row("ttft_p50_s", _TTFT, ", median", server.ttft_p50_s, _of(found, _TTFT)),
        _row("ttft_p99_s", _TTFT, ", 99th of 100", server.ttft_p99_s, None),
        Beside("itl_p50_s", f"{_ITL}, median", "s", server.itl_p50_s, None, _MEDIAN),
        Beside("itl_p99_s", f"{_ITL}, 99th of 100", "s", server.itl_p99_s, None),
        Beside("itl_mean_s", f"{_ITL}, mean", "s", server.itl_mean_s, _of(found, "serving.tpot_s")),
        _row("latency_p50_s", _LATENCY, ", median", server.latency_p50_s, _of(found, _LATENCY)),
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


def _of(found: Evaluation | None, path: str) -> Estimate | None:
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
