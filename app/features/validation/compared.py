"""A published measurement as a scenario, and what an evaluation says to compare with it.

What the parts of a measurement are called: metrics, regimes, families of accelerators.

One measurement beside its predictions, all of them in the unit of the measurement.

Three predictions, from the most honest to the most flattered: `unseen`, by a fit that had seen nothing of the
accelerator's family; `held_out`, by one that had not seen the model on the accelerator; `in_sample`, by the product as
it answers, whose fit has seen the row.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.calc.measure import Measures, measure
from app.calc.outputs import output_at
from app.calc.quantity import quantity, significant
from app.calc.time.expected.timing import keys_of
from app.calc.time.serving import Estimate
from app.catalog.calibration import Blind
from app.catalog.catalog import Catalog
from app.catalog.measurements import Measurement, Metric
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario

_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,39}")
_QUANTITIES = {
    Metric.TTFT: "ttft",
    Metric.TPOT: "tpot",
    Metric.PER_USER: "tpot",
    Metric.OUTPUT: "throughput",
    Metric.TOTAL: "throughput",
    Metric.PREFILL: "prefill",
    Metric.DECODE: "tpot",
}


def scenario_of(row: Measurement) -> Scenario:
    """What was measured, as a question. Cells that the source leaves open stay at the product's defaults."""
    version = row.version if _VERSION.fullmatch(row.version) else None
    precision = {"weights": row.weights} | ({"kv_cache": row.kv_cache} if row.kv_cache else {})
    prompt, cached = int(row.prompt_tokens), int(row.cached_tokens or 0)
    return Scenario.model_validate(
        {
            "model": {"id": row.model},
            "hardware": {"id": row.accelerator, "count": int(row.gpus)},
            "precision": precision,
            "parallelism": {
                "tensor": int(row.tensor),
                "pipeline": int(row.pipeline),
                "expert": int(row.expert),
                "data": int(row.data),
            },
            "engine": {"id": row.engine, "version": version},
            "workload": {
                "prompt_tokens": prompt,
                "output_tokens": int(row.output_tokens),
                "concurrency": int(row.concurrency) if row.concurrency else None,
                "prefix_hit_rate": cached / prompt,
            },
        }
    )


def regime_of(row: Measurement, stack: str) -> str:
    """Quantity and load, as errors and intervals are kept: `tpot many`, `throughput saturated`, `prefill`.

    `stack` is that of the deployment's `Keys`: decode under llama.cpp, whose kernels are its own, stands apart.
    """
    load = "saturated" if not row.concurrency else "one" if row.concurrency == "1" else "many"
    quantity = _QUANTITIES[row.metric]
    if quantity == "prefill":
        return quantity
    return f"{stack} {quantity} {load}" if (stack, quantity) == ("llama.cpp", "tpot") else f"{quantity} {load}"


def estimate_of(row: Measurement, measures: Measures) -> Estimate:
    """What the product says of what was measured, from the measures of the row's scenario."""
    if row.metric is Metric.PREFILL:
        new = int(row.prompt_tokens) - int(row.cached_tokens or 0)
        return _rate(new, measures.prefill_s)
    if row.metric is Metric.DECODE:
        return _rate(1, measures.decode_s)
    found: Estimate = getattr(measures.serving, row.metric.value)
    return found


def _rate(tokens: int, time: Estimate) -> Estimate:
    """Tokens a second from the time that they take; the slow end of the one is the low end of the other."""

    def rate(seconds: float | None) -> float | None:
        return None if seconds is None else tokens / seconds

    return Estimate(tokens / time.ceiling, rate(time.high), rate(time.mid), rate(time.low))


RATES = frozenset(set(Metric) - {Metric.TTFT, Metric.TPOT})
"""Metrics of which more is faster; the others are times."""
METRICS: Mapping[Metric, str] = {
    Metric.TTFT: output_at("serving.ttft_s").label,
    Metric.TPOT: output_at("serving.tpot_s").label,
    Metric.OUTPUT: output_at("serving.output_tokens_per_s").label,
    Metric.PER_USER: output_at("serving.output_tokens_per_s_per_user").label,
    Metric.TOTAL: output_at("serving.total_tokens_per_s").label,
    Metric.PREFILL: "Prefill throughput",
    Metric.DECODE: "Decode throughput per sequence",
}
_WORDS_QUANTITIES = {"ttft": "first token", "tpot": "output token", "throughput": "throughput", "prefill": "prefill"}
_LOADS = {"one": "one request at a time", "many": "several at a time", "saturated": "as many as fit"}
_FAMILIES = {
    "hopper": "Hopper",
    "blackwell": "Blackwell",
    "blackwell-ultra": "Blackwell Ultra",
    "blackwell-soc": "Blackwell SoC",
    "blackwell-gddr": "Blackwell with GDDR",
    "ampere": "Ampere with HBM",
    "ampere-gddr": "Ampere with GDDR",
    "ampere-gddr-consumer": "Ampere, GeForce",
    "ada": "Ada",
    "ada-consumer": "Ada, GeForce",
    "cdna2": "CDNA 2",
    "cdna3": "CDNA 3",
    "rdna": "RDNA",
    "rdna-soc": "RDNA SoC",
    "apple": "Apple",
    "xe2": "Xe2",
    "xe-hpc": "Xe-HPC",
}


def regime_words(regime: str) -> str:
    """A regime as a reader would say it: `tpot many` is "output token, several at a time"."""
    *stack, measured, load = regime.split() if " " in regime else (regime, "")
    words = _WORDS_QUANTITIES.get(measured, measured) + (f", {_LOADS[load]}" if load else "")
    return f"{' '.join(stack)}: {words}" if stack else words


def family_words(family: str) -> str:
    """A family of accelerators; one that stands alone by the name of its architecture."""
    return _FAMILIES.get(family, family)


def value_words(value: float, metric: Metric, digits: int = 3) -> str:
    """A figure with the unit of its metric."""
    return f"{significant(value, digits)} tokens/s" if metric in RATES else quantity(value, "s", digits)


class Inside(StrEnum):
    """Where a measurement lies of the interval around its cross-validated prediction."""

    YES = "inside"
    NO = "outside"
    UNCLAIMED = "unclaimed"


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """One measurement and its predictions. `in_sample` is None where the product tells no figure.

    `low` and `high` are the interval that the product gives around its own prediction, moved to the cross-validated
    one; None where no interval is claimed. The names are those of the catalog.
    """

    measurement: Measurement
    model: str
    engine: str
    accelerator: str
    family: str
    regime: str
    held_out: float
    unseen: float
    in_sample: float | None
    low: float | None
    high: float | None

    @property
    def measured(self) -> float:
        """Seconds, or tokens a second."""
        return self.measurement.value

    @property
    def ratio(self) -> float:
        """Cross-validated prediction ÷ measured."""
        return self.held_out / self.measured

    @property
    def factor(self) -> float:
        """How many times the cross-validated prediction is off, in whichever direction; at least 1."""
        return max(self.ratio, 1 / self.ratio)

    @property
    def speed(self) -> float:
        """Predicted speed ÷ measured speed: above 1 the prediction is too fast, for a time as for a rate."""
        return self.ratio if self.measurement.metric in RATES else 1 / self.ratio

    @property
    def is_scored(self) -> bool:
        """Whether it counts in error tables."""
        return self.measurement.is_scored

    @property
    def inside(self) -> Inside:
        """Whether the measurement lies inside the interval, ends included."""
        if self.low is None or self.high is None:
            return Inside.UNCLAIMED
        return Inside.YES if self.low <= self.measured <= self.high else Inside.NO


def compared(row: Measurement, blind: Mapping[str, Blind], catalog: Catalog) -> Compared:
    """A measurement beside its predictions; the in-sample one by the way that every answer goes.

    Raises:
        KeyError: no cross-validated prediction is known of the row: the calibration is older than the measurements.
    """
    deployment = resolve(scenario_of(row), catalog).deployment
    keys, estimate, seen = keys_of(deployment), estimate_of(row, measure(deployment)), blind[row.id]
    low, high = _moved(estimate, seen.held_out)
    return Compared(
        measurement=row,
        model=catalog.models[row.model].name,
        engine=catalog.engines[row.engine].name,
        accelerator=catalog.accelerators[row.accelerator].name,
        family=keys.family,
        regime=regime_of(row, keys.stack),
        held_out=seen.held_out,
        unseen=seen.unseen,
        in_sample=estimate.mid,
        low=low,
        high=high,
    )


def _moved(estimate: Estimate, prediction: float) -> tuple[float | None, float | None]:
    """The interval of an estimate around another prediction: its ends keep their ratios to the middle."""
    if estimate.mid is None or estimate.low is None or estimate.high is None:
        return None, None
    return prediction * estimate.low / estimate.mid, prediction * estimate.high / estimate.mid
