"""What the results region shows of one answer, on the workbench and on a saved page alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.derivation import Explanation
from app.calc.quantity import quantity, significant
from app.calc.verdict import State, Verdict, verdict
from app.features.workbench.charts.gallery import all_charts
from app.features.workbench.memory_view import MemoryView, engine_words, memory_view
from app.features.workbench.numbers import Level, Metric, levels, metrics
from app.features.workbench.undo import UNDO, replaced
from app.scenario.answer import Answer
from app.scenario.refusal import ScenarioError
from app.scenario.scenario import Scenario
from app.web import urls
from app.web.figure import Chart

BINARY, DECIMAL = "gib", "gb"


@dataclass(frozen=True, slots=True)
class LeverLink:
    """A lever as a link to the changed scenario, with its effect in words; the link knows the way back."""

    label: str
    href: str
    state: str
    effects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerView:
    """Everything the results template reads."""

    answer: Answer
    items: Sequence[tuple[str, str]]
    binary: bool
    verdict: Verdict
    metrics: Sequence[Metric]
    levels: Sequence[Level]
    levers: Sequence[LeverLink]
    memory: MemoryView
    charts: Sequence[Chart]
    export_stamp: str

    @property
    def units(self) -> str:
        """The query value of the size units."""
        return BINARY if self.binary else DECIMAL

    @property
    def verdict_words(self) -> tuple[str, str]:
        """The sentence in two: the state as a heading, and its reason."""
        return self.verdict.heading, self.verdict.standalone_reason

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Of the accelerator, for the working of the operators."""
        return self.answer.evaluation.deployment.accelerator.bandwidth_bytes_per_s

    @property
    def rule_explanations(self) -> Sequence[Explanation]:
        """The working of the back-of-envelope."""
        return [e for e in self.answer.evaluation.explanations if e.id.startswith("rule_of_thumb.")]

    def chart_data(self) -> list[dict[str, Any]]:
        """The figures, for the script that draws them, with the words an exported picture carries."""
        return [
            {"id": chart.id, "title": chart.title, "caption": self.export_stamp, "figure": chart.figure}
            for chart in self.charts
        ]


def answer_view(answered: Answer, *, binary: bool) -> AnswerView:
    """The view of an answer; sizes in GiB where `binary`."""
    evaluation = answered.evaluation
    items = urls.scenario_items(answered.scenario, BINARY if binary else DECIMAL)
    return AnswerView(
        answer=answered,
        items=items,
        binary=binary,
        verdict=verdict(evaluation.deployment, evaluation.measures, binary=binary),
        metrics=metrics(evaluation, binary=binary),
        levels=levels(evaluation, binary=binary),
        levers=_levers(answered, binary=binary),
        memory=memory_view(answered, binary=binary),
        charts=all_charts(evaluation, binary=binary),
        export_stamp=_stamp(answered),
    )


def subject(answered: Answer) -> str:
    """The scenario in a line: model on accelerator, formats, lengths."""
    deployment = answered.evaluation.deployment
    precision, workload = deployment.precision, deployment.workload
    formats = f"weights {precision.weights.label}, cache {precision.kv_cache}, arithmetic {precision.compute}"
    lengths = f"{workload.prompt_tokens:,} + {workload.output_tokens:,} tokens"
    users, gpus = answered.evaluation.measures.memory.running_sequences, deployment.gpus
    cards = deployment.accelerator.name if gpus == 1 else f"{gpus:,} × {deployment.accelerator.name}"
    return (
        f"{deployment.architecture.name} on {cards}; {formats}; {lengths}; "
        f"{users:,} {'user' if users == 1 else 'users'}; {engine_words(answered)}{_calibrated(answered)}"
    )


def _calibrated(answered: Answer) -> str:
    own = answered.evaluation.deployment.own_calibration
    return "" if own is None else f"; calibrated by «{own.name}»"


def _stamp(answered: Answer) -> str:
    expected = answered.evaluation.measures.expected
    fitted = "" if expected is None else f", calibration {expected.calibration_version}"
    versions = f"formulas {answered.formula_version}, catalog {answered.catalog_version}{fitted}"
    return f"{subject(answered)} · Tokenroof {versions}"


def _levers(answered: Answer, *, binary: bool) -> list[LeverLink]:
    found, units = [], BINARY if binary else DECIMAL
    here = urls.scenario_items(answered.scenario, units)
    # What a log said came out of the scenario as it is; of the changed one it says nothing.
    document = answered.scenario.document() | {"observed": {}}
    for lever in answered.evaluation.levers:
        patched = merge_patch(document, dict(lever.change))
        try:
            scenario = Scenario.model_validate(patched)
        except (ValueError, ScenarioError):  # a lever must never break the page it stands on
            continue
        effect = lever.effect
        words = []
        if effect.state[0] is not effect.state[1]:
            words.append(effect.state[1].value.replace("_", " "))
        elif effect.state[1] is State.DOES_NOT_FIT:
            words.append("still does not fit")
        if effect.goodput_per_s is not None:
            good = effect.goodput_per_s
            words.append(f"goodput {significant(good.before, 3)} → {significant(good.after, 3)} requests/s")
        words.append(f"{_change(effect.output_tokens_per_s.before, effect.output_tokens_per_s.after)} tokens/s")
        words.append(f"TPOT {quantity(effect.tpot_s.before, 's', 3)} → {quantity(effect.tpot_s.after, 's', 3)}")
        if effect.max_concurrency.before != effect.max_concurrency.after:
            words.append(f"room {effect.max_concurrency.before:,.0f} → {effect.max_concurrency.after:,.0f}")
        items = urls.scenario_items(scenario, units)
        href = urls.workbench([*items, (UNDO, replaced(here, items))])
        found.append(LeverLink(lever.label, href, effect.state[1].value, tuple(words)))
    return found


def _change(before: float, after: float) -> str:
    ratio = after / before
    if ratio < 1.1:  # a change of a few per cent must not read as none
        return f"{ratio:.3g} ×"
    return f"{ratio:.2g} ×" if ratio < 10 else f"{ratio:,.0f} ×"


def merge_patch(target: Any, patch: Any) -> Any:
    """`target` with `patch` merged in, as RFC 7396 has it: null removes, objects merge, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result
