"""The answer: every number of one deployment with its derivation. Every face of the product shows this object.

Which formulas made a number. Raised whenever a result changes, so that an old link can say then and now.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from app.calc.deployment import Deployment
from app.calc.derivation import Explanation
from app.calc.derivations.expected import explain_expected
from app.calc.derivations.memory import explain_memory
from app.calc.derivations.rule_of_thumb import explain_rule_of_thumb
from app.calc.derivations.time import explain_time
from app.calc.measure import Measures, measure, replica_batch
from app.calc.memory.logged import Line, compare
from app.calc.model.attention_variants import Alternative
from app.calc.notices import Notice, notices
from app.calc.optimize.optimization import Asked, Optimization
from app.calc.optimize.registry import optimizations
from app.calc.optimize.suggestions import Lever, levers
from app.calc.time.goodput import Goodput, explain_goodput, goodput
from app.calc.time.rule_of_thumb import RuleOfThumb, rule_of_thumb
from app.calc.verdict import Verdict, verdict


@dataclass(frozen=True)
class Evaluation:
    """All numbers in SI units. `comparison` is of what was given with the scenario.

    Levers, optimizations, goodput and workings are made when they are first asked for: a batch of a thousand reads none
    of them, and each lever is an evaluation of its own. `alternatives` are the cards that a lever may propose instead.
    """

    deployment: Deployment
    measures: Measures
    rule_of_thumb: RuleOfThumb
    verdict: Verdict
    notices: tuple[Notice, ...]
    comparison: tuple[Line, ...]
    alternatives: Sequence[Alternative] = field(default=(), repr=False)

    @cached_property
    def levers(self) -> tuple[Lever, ...]:
        """Single changes that would help, the most effective first."""
        return levers(self.deployment, self.measures, self.alternatives)

    @cached_property
    def explanations(self) -> tuple[Explanation, ...]:
        """The working of every explained number."""
        return (
            *explain_rule_of_thumb(self.deployment, self.measures, self.rule_of_thumb),
            *explain_memory(self.deployment, self.measures),
            *explain_time(self.deployment, self.measures),
            *explain_expected(self.deployment, self.measures),
            *(explain_goodput(self.goodput) if self.goodput else ()),
        )

    @cached_property
    def optimizations(self) -> tuple[Optimization, ...]:
        """Every optimization as a what-if, in the order in which they are shown."""
        return optimizations(Asked(self.deployment, self.measures, self.alternatives))

    @cached_property
    def goodput(self) -> Goodput | None:
        """Requests a second that meet the targets; None where there are none."""
        return goodput(self.deployment, self.measures)


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
        notices=notices(deployment, measures),
        comparison=compare(deployment, measures),
        alternatives=alternatives,
    )


FORMULA_VERSION = "5"
