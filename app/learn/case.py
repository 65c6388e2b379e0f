"""The few scenarios that the lesson compares: the reader's own, and the same with one thing changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from app.answer import Answer, answer
from app.calc.deployment import Deployment
from app.calc.evaluation import Evaluation
from app.calc.measure import replica_batch
from app.calc.rule_of_thumb import RuleInputs, RuleOfThumb, rule_inputs
from app.calc.serving import Estimate
from app.catalog.catalog import Catalog
from app.refusal import ScenarioError
from app.scenario import Scenario


@dataclass(frozen=True)
class Case:
    """One scenario with its answer. `words` name it in a sentence: "one user", "64 users"."""

    key: str
    words: str
    answered: Answer

    @property
    def scenario(self) -> Scenario:
        """As it was asked, every field written out."""
        return self.answered.scenario

    @property
    def evaluation(self) -> Evaluation:
        """All its numbers."""
        return self.answered.evaluation

    @property
    def deployment(self) -> Deployment:
        """What is evaluated."""
        return self.answered.evaluation.deployment

    @property
    def rule(self) -> RuleOfThumb:
        """Its back-of-envelope."""
        return self.answered.evaluation.rule_of_thumb

    @cached_property
    def batch(self) -> int:
        """Sequences that share one step of a replica."""
        return replica_batch(self.deployment, self.evaluation.measures.memory.running_sequences)

    @cached_property
    def inputs(self) -> RuleInputs:
        """What the back-of-envelope divides."""
        return rule_inputs(self.deployment, self.batch)

    def at(self, path: str) -> float:
        """The number at a dotted path of the evaluation's document, without writing the document.

        Raises:
            KeyError: there is no such number.
        """
        head, _, rest = path.partition(".")
        measures = self.evaluation.measures
        if head == "rule_of_thumb":
            found: Any = getattr(self.rule, rest)
        elif head == "memory":
            inner, _, key = rest.rpartition(".")
            found = getattr(measures.memory.per_gpu if inner else measures.memory, key)
        elif head == "serving":
            key, _, level = rest.partition(".")
            found = getattr(getattr(measures.serving, key), level)
        elif head == "goodput":
            found = getattr(self.evaluation.goodput, rest, None)
        elif head in ("prefill", "decode"):
            found = self._phase(head, rest)
        else:
            raise KeyError(path)
        if found is None:
            raise KeyError(path)
        return float(found)

    def _phase(self, phase: str, key: str) -> Any:
        measures = self.evaluation.measures
        if key.startswith("expected_s."):
            estimate: Estimate = measures.prefill_s if phase == "prefill" else measures.decode_s
            return getattr(estimate, key.partition(".")[2])
        return getattr(measures.prefill if phase == "prefill" else measures.decode, key)


def changed(scenario: Scenario, changes: Mapping[str, Mapping[str, Any]]) -> Scenario:
    """The scenario with some fields of some parts replaced; nothing is validated that is not computed."""
    parts = {part: getattr(scenario, part).model_copy(update=dict(fields)) for part, fields in changes.items()}
    return scenario.model_copy(update=parts)


def case(key: str, words: str, scenario: Scenario, catalog: Catalog) -> Case | None:
    """The case of a scenario; None where it is not computed, such as an engine that refuses the model."""
    try:
        return Case(key, words, answer(scenario, catalog))
    except ScenarioError:
        return None
