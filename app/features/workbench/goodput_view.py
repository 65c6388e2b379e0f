"""The goodput of a scenario as a page shows it; where there is none, why, and how to ask for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.calc.derivation import Explanation
from app.calc.evaluate import Evaluation
from app.calc.quantity import quantity, significant
from app.calc.time.goodput import LIMIT_WORDS, Goodput, explain_goodput
from app.features.workbench.charts.goodput import goodput_chart
from app.scenario.answer import Answer
from app.scenario.scenario import Scenario
from app.web import urls
from app.web.figure import Chart

USUAL_TTFT_S, USUAL_TPOT_S = 2.0, 0.05
DIGITS = 3


@dataclass(frozen=True, slots=True)
class GoodputView:
    """`figures` are label, value and scope; `why_none` stands where nothing is told, `href` sets the usual targets."""

    figures: Sequence[tuple[str, str, str]]
    chart: Chart | None
    explanations: Sequence[Explanation]
    targets: str
    why_none: str
    href: str | None


def goodput_view(answered: Answer, units: str) -> GoodputView:
    """What is told of the goodput of an answer."""
    found, targets = answered.evaluation.goodput, _targets(answered.evaluation)
    if found is None:
        href = None if targets else _with_targets(answered, units)
        return GoodputView((), None, (), targets, _why_none(answered.evaluation) if targets else "", href)
    gpus = answered.evaluation.deployment.gpus
    chart, working = goodput_chart(answered.evaluation), explain_goodput(found)
    return GoodputView(_figures(found, gpus), chart, working, targets, "", None)


def _figures(found: Goodput, gpus: int) -> list[tuple[str, str, str]]:
    def rate(value: float) -> str:
        return f"{significant(value, DIGITS)} requests/s"

    told = [
        ("Goodput", rate(found.rate_per_s), f"{significant(100 * found.attained, DIGITS)} % of those offered then"),
        (
            "Offered for it",
            rate(found.offered_per_s),
            f"{significant(found.concurrency, DIGITS)} requests in the system",
        ),
        ("With the room full", rate(found.most_per_s), "pass, in time or not"),
        ("What stops it", LIMIT_WORDS[found.limiter], "at a higher rate"),
    ]
    if gpus > 1:
        told.insert(1, ("Goodput for each GPU", rate(found.rate_per_s / gpus), f"of {gpus:,}"))
    return told


def _targets(evaluation: Evaluation) -> str:
    workload = evaluation.deployment.workload
    told = (("TTFT", workload.slo_ttft_s), ("TPOT", workload.slo_tpot_s))
    return " and ".join(f"{name} within {quantity(target, 's', DIGITS)}" for name, target in told if target is not None)


def _why_none(evaluation: Evaluation) -> str:
    """Why nothing is told though a target is set."""
    deployment = evaluation.deployment
    if deployment.engine.is_static:
        return "Arrivals at a static batch wait for it to end: no rate is told of it."
    if evaluation.measures.memory.max_concurrency < 1:
        return "Not one request finds room, so that no rate is good."
    return "Nothing is expected of this deployment, so that its load cannot be told."


def _with_targets(answered: Answer, units: str) -> str:
    document = answered.scenario.document()
    targets = {"slo_ttft_s": USUAL_TTFT_S, "slo_tpot_s": USUAL_TPOT_S}
    changed = Scenario.model_validate(document | {"workload": {**document["workload"], **targets}})
    return f"{urls.optimizations(urls.scenario_items(changed, units))}#goodput"
