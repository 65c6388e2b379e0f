"""At which batch speculation stops paying: the pace with and without guesses over a growing batch."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.calc.deployment import Deployment
from app.calc.expected.timing import efficiency_of, step_time
from app.calc.operators import decode_operators
from app.calc.phase import ceiling_s

Values = NDArray[np.float64]
MOST_BATCH = 65_536
POINTS = 41


@dataclass(frozen=True, slots=True, eq=False)
class Paying:
    """Seconds of a token over the `batch` of a replica, without guesses and with them; at the ceiling and as expected.

    `expected_…` are None where nothing is calibrated.
    """

    batch: Values
    plain_s: Values
    guessed_s: Values
    expected_plain_s: Values | None
    expected_guessed_s: Values | None
    tokens_per_step: float = 1.0

    def at(self, tokens_per_step: float) -> "Paying":
        """The same steps, where they give another number of tokens."""
        ratio = self.tokens_per_step / tokens_per_step
        expected = None if self.expected_guessed_s is None else self.expected_guessed_s * ratio
        return replace(
            self, guessed_s=self.guessed_s * ratio, expected_guessed_s=expected, tokens_per_step=tokens_per_step
        )

    @property
    def gain(self) -> Values:
        """How many times sooner a token comes, as expected; at the ceiling where nothing is."""
        if self.expected_plain_s is None or self.expected_guessed_s is None:
            return self.plain_s / self.guessed_s
        return self.expected_plain_s / self.expected_guessed_s

    @property
    def stops_at(self) -> float | None:
        """The batch from which on guessing costs more than it gives; 1 where it never pays, None where it always does.

        Between two points of the grid the gain is taken to be linear in the logarithm of the batch.
        """
        gain = self.gain
        below = np.nonzero(gain <= 1.0)[0]
        if not len(below):
            return None
        last_paying = np.nonzero(gain > 1.0)[0]
        if not len(last_paying):
            return 1.0
        at = int(last_paying[-1])
        if at + 1 >= len(gain):
            return None
        share = (gain[at] - 1.0) / (gain[at] - gain[at + 1])
        low, high = np.log(self.batch[at]), np.log(self.batch[at + 1])
        return float(np.exp(low + share * (high - low)))


def paying(guessing: Deployment, batch: Values | None = None) -> Paying:
    """The pace of a deployment that speculates, and of the same without.

    Args:
        guessing: with speculation; its workload's concurrency is not read.
        batch: sequences of a replica, shape (n,); None spaces them evenly on a log scale.
    """
    plain = replace(guessing, speculation=None)
    found = np.unique(np.rint(np.geomspace(1, MOST_BATCH, POINTS))).astype(float) if batch is None else batch
    return Paying(
        batch=found,
        plain_s=_ceiling(plain, found),
        guessed_s=_ceiling(guessing, found),
        expected_plain_s=_expected(plain, found),
        expected_guessed_s=_expected(guessing, found),
        tokens_per_step=guessing.tokens_per_step,
    )


def _ceiling(deployment: Deployment, batch: Values) -> Values:
    operators = decode_operators(deployment, batch, deployment.workload.mid_answer_tokens)
    step = np.asarray(ceiling_s(operators, deployment.accelerator), dtype=float)
    return step / deployment.tokens_per_step


def _expected(deployment: Deployment, batch: Values) -> Values | None:
    if deployment.calibration is None:
        return None
    efficiency = efficiency_of(deployment, deployment.calibration)
    step = step_time(deployment, efficiency, batch, deployment.workload.mid_answer_tokens).total_s
    return np.maximum(np.asarray(step, dtype=float) / deployment.tokens_per_step, _ceiling(deployment, batch))
