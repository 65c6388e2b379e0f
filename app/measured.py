"""A published measurement as a scenario, and what an evaluation says to compare with it."""

import re

from app.calc.measure import Measures
from app.calc.serving import Estimate
from app.catalog.measurements import Measurement, Metric
from app.scenario import Scenario

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
