"""The answer: every number of one deployment with its derivation. Every face of the product shows this object."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.calc.comparison import Line, compare
from app.calc.deployment import Deployment
from app.calc.explain_memory import explain_memory
from app.calc.explain_rule import explain_rule_of_thumb
from app.calc.explain_time import explain_time
from app.calc.explanation import Explanation
from app.calc.lever_candidates import Alternative
from app.calc.levers import Lever, levers
from app.calc.measure import Measures, measure, replica_batch
from app.calc.notice import Notice
from app.calc.notices import notices
from app.calc.rule_of_thumb import RuleOfThumb, rule_of_thumb
from app.calc.verdict import Verdict, verdict


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All numbers in SI units; ceilings unless named otherwise. `comparison` is of what was given with the scenario."""

    deployment: Deployment
    measures: Measures
    rule_of_thumb: RuleOfThumb
    verdict: Verdict
    levers: tuple[Lever, ...]
    explanations: tuple[Explanation, ...]
    notices: tuple[Notice, ...]
    comparison: tuple[Line, ...]


def evaluate(deployment: Deployment, alternatives: Sequence[Alternative] = ()) -> Evaluation:
    """The evaluation of `deployment`.

    Args:
        deployment: what is asked.
        alternatives: cards that a lever may propose instead.

    Raises:
        UnknownPeakError: the accelerator publishes no rate for a type that the precision needs.
    """
    measures = measure(deployment)
    rule = rule_of_thumb(deployment, replica_batch(deployment, measures.memory.running_sequences))
    return Evaluation(
        deployment=deployment,
        measures=measures,
        rule_of_thumb=rule,
        verdict=verdict(deployment, measures),
        levers=levers(deployment, measures, alternatives),
        explanations=(
            *explain_rule_of_thumb(deployment, measures, rule),
            *explain_memory(deployment, measures),
            *explain_time(deployment, measures),
        ),
        notices=notices(deployment, measures),
        comparison=compare(deployment, measures),
    )
