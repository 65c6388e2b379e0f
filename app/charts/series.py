"""Decode over a growing batch: the numbers that two charts draw, from the same formulas as the evaluation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.calc.coverage import step_weight_bytes
from app.calc.evaluation import Evaluation
from app.calc.expected.timing import step_time
from app.calc.operators import decode_operators
from app.calc.phase import ceiling_s
from app.calc.rule_of_thumb import decode_step_s, ridge_batch, rule_inputs

Values = NDArray[np.float64]
LEAST_TOP = 1024
LANDMARKS = (1, 16, 256, 4096, 65_536)


@dataclass(frozen=True, slots=True)
class BatchSeries:
    """One decode step by batch: ceilings at mid-answer, and the rule of thumb that reads weights alone.

    `expected_step_s` is what a server takes; None where nothing is calibrated.
    """

    batch: Values
    step_s: Values
    intensity_flops_per_byte: Values
    flops_per_s: Values
    weights_only_step_s: Values
    expected_step_s: Values | None
    ridge_batch: float
    tokens_per_step: float = 1.0

    @property
    def tpot_s(self) -> Values:
        """Seconds of a token: of a step, where a step gives one."""
        return self.step_s / self.tokens_per_step

    @property
    def expected_tpot_s(self) -> Values | None:
        """The same on a server."""
        return None if self.expected_step_s is None else self.expected_step_s / self.tokens_per_step


def batch_series(evaluation: Evaluation, count: int = 33) -> BatchSeries:
    """`count` batches, evenly apart on a log scale, past the largest that matters: ridge, capacity or the one asked."""
    deployment, held = evaluation.deployment, evaluation.measures.memory
    accelerator, inputs = deployment.accelerator, rule_inputs(deployment, held.running_sequences)
    params, peak, bandwidth = inputs.n_params, inputs.peak_flops_per_s, inputs.bandwidth_bytes_per_s
    ridge = ridge_batch(deployment)
    top = max(LEAST_TOP, 2 * held.max_concurrency, 2 * held.running_sequences, min(2 * ridge, 1e5))
    batch = np.unique(np.rint(np.geomspace(1, top, count)))
    landmarks = [mark for mark in LANDMARKS if mark < top]
    batch = np.unique(np.concatenate([batch, landmarks, [held.running_sequences]])).astype(float)

    operators = decode_operators(deployment, batch, deployment.workload.mid_answer_tokens)
    step = np.asarray(ceiling_s(operators, accelerator), dtype=float)
    flops = np.sum([np.broadcast_to(op.flops, batch.shape) for op in operators], axis=0)
    moved = np.sum([np.broadcast_to(op.bytes, batch.shape) for op in operators], axis=0)
    read = step_weight_bytes(deployment.architecture, deployment.precision.weights, batch)
    alone = decode_step_s(read, params, batch, peak, bandwidth)
    weights_only = np.asarray(alone, dtype=float)
    return BatchSeries(
        batch,
        step,
        flops / moved,
        flops / step,
        weights_only,
        _expected(evaluation, batch),
        ridge,
        deployment.tokens_per_step,
    )


def _expected(evaluation: Evaluation, batch: Values) -> Values | None:
    expected, deployment = evaluation.measures.expected, evaluation.deployment
    if expected is None:
        return None
    step = step_time(deployment, expected.efficiency, batch, deployment.workload.mid_answer_tokens)
    return np.asarray(step.total_s, dtype=float)
