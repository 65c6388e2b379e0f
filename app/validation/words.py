"""What the parts of a measurement are called: metrics, regimes, families of accelerators."""

from collections.abc import Mapping

from app.calc.notation import quantity, significant
from app.calc.outputs import output_at
from app.catalog.measurements import Metric

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
_QUANTITIES = {"ttft": "first token", "tpot": "output token", "throughput": "throughput", "prefill": "prefill"}
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
    words = _QUANTITIES.get(measured, measured) + (f", {_LOADS[load]}" if load else "")
    return f"{' '.join(stack)}: {words}" if stack else words


def family_words(family: str) -> str:
    """A family of accelerators; one that stands alone by the name of its architecture."""
    return _FAMILIES.get(family, family)


def value_words(value: float, metric: Metric, digits: int = 3) -> str:
    """A figure with the unit of its metric."""
    return f"{significant(value, digits)} tokens/s" if metric in RATES else quantity(value, "s", digits)
