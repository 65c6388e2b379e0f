"""The product's own answers to a measurement: what it expects, its ceiling, and the rule of thumb beside them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.calc.deployment import Deployment
from app.calc.measure import measure, replica_batch
from app.calc.memory.capacity import memory
from app.calc.time.rule_of_thumb import RuleOfThumb, rule_of_thumb
from app.catalog.catalog import Catalog
from app.catalog.measurements import Measurement, Metric
from app.features.validation.compared import estimate_of, scenario_of
from app.scenario.resolve import resolve
from benchmarks.timing import best_of

REPEATS = 3


@dataclass(frozen=True, slots=True)
class Answers:
    """Predictions by the measurement's id, and the seconds of each call, from the row to the figure."""

    predicted: Mapping[str, float]
    call_s: Mapping[str, float]


def deployment_of(row: Measurement, catalog: Catalog) -> Deployment:
    """What was measured, resolved."""
    return resolve(scenario_of(row), catalog).deployment


def expected(rows: Sequence[Measurement], catalog: Catalog) -> Answers:
    """What the product expects; a row of which it claims nothing has no answer."""

    def predict(row: Measurement) -> float | None:
        return estimate_of(row, measure(deployment_of(row, catalog))).mid

    return _answers(rows, predict)


def ceilings(rows: Sequence[Measurement], catalog: Catalog) -> Answers:
    """The roofline, operator by operator; nothing is fitted."""

    def predict(row: Measurement) -> float:
        return estimate_of(row, measure(replace(deployment_of(row, catalog), calibration=None))).ceiling

    return _answers(rows, predict)


def thumb(rows: Sequence[Measurement], catalog: Catalog) -> Answers:
    """The rule of thumb: (weights + cache) ÷ bandwidth against 2·N·B ÷ peak, for a step and for a prompt.

    Throughput is that of a batch whose prompts are read one after the other and whose answers are written together.
    """

    def predict(row: Measurement) -> float:
        deployment = deployment_of(row, catalog)
        batch = replica_batch(deployment, memory(deployment).served_sequences)
        return _by_thumb(row, deployment, batch, rule_of_thumb(deployment, batch))

    return _answers(rows, predict)


def pieces(rows: Sequence[Measurement], catalog: Catalog) -> Mapping[str, float]:
    """Mean seconds of the steps of an answer, by name, each the best of its repeats."""
    scenarios = [scenario_of(row) for row in rows]
    deployments = [resolve(scenario, catalog).deployment for scenario in scenarios]
    steps: Mapping[str, Callable[[], object]] = {
        "validate and resolve": lambda: [deployment_of(row, catalog) for row in rows],
        "measure, expected times included": lambda: [measure(deployment) for deployment in deployments],
        "measure, ceilings alone": lambda: [measure(replace(d, calibration=None)) for d in deployments],
        "rule of thumb alone": lambda: [rule_of_thumb(d, d.workload.concurrency or 1) for d in deployments],
    }
    return {name: best_of(step, REPEATS) / len(rows) for name, step in steps.items()}


def _answers(rows: Sequence[Measurement], predict: Callable[[Measurement], float | None]) -> Answers:
    predicted, call_s = {}, {}
    for row in rows:
        found = predict(row)
        if found is not None:
            predicted[row.id] = found
            call_s[row.id] = best_of(lambda row=row: predict(row), REPEATS)  # type: ignore[misc]
    return Answers(predicted, call_s)


def _by_thumb(row: Measurement, deployment: Deployment, batch: int, rule: RuleOfThumb) -> float:
    workload = deployment.workload
    if row.metric is Metric.TTFT:
        return rule.prefill_s
    if row.metric is Metric.TPOT:
        return rule.kv_step_s
    answers_s = batch * rule.prefill_s + workload.output_tokens * rule.kv_step_s
    tokens = workload.output_tokens if row.metric is Metric.OUTPUT else workload.total_tokens
    return deployment.replicas * batch * tokens / answers_s
