"""The measurements that are compared, each with its deployment and what the product would ask of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.calc.deployment import Deployment
from app.calc.measure import replica_batch
from app.calc.memory.capacity import memory
from app.calc.time.expected.calibration import Keys
from app.calc.time.expected.floors import Piece, pieces
from app.calc.time.expected.timing import keys_of
from app.calc.time.operators import decode_operators, prefill_operators
from app.catalog.catalog import Catalog
from app.catalog.measurements import Measurement
from app.features.validation.compared import regime_of, scenario_of
from app.scenario.resolve import resolve


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: the pieces of a step and of a prompt, and the numbers that the closed form reads."""

    measurement: Measurement
    deployment: Deployment
    keys: Keys
    running: int
    batch: int
    asked: int
    decode: tuple[Piece, ...]
    prompt: tuple[Piece, ...]
    busy: tuple[Piece, ...]

    @property
    def regime(self) -> str:
        """Metric and load, as intervals are kept: `tpot many`, `throughput saturated`."""
        return regime_of(self.measurement, self.keys.stack)


def read_rows(catalog: Catalog) -> Sequence[Row]:
    """Every compared measurement."""
    return [_row(m, catalog) for m in catalog.measurements if m.is_compared]


def _row(measurement: Measurement, catalog: Catalog) -> Row:
    deployment = resolve(scenario_of(measurement), catalog).deployment
    workload, held = deployment.workload, memory(deployment)
    running = held.served_sequences
    batch = replica_batch(deployment, running)
    cached = workload.cached_prompt_tokens
    new, ranks = workload.prompt_tokens - cached, min(batch, deployment.split.data)
    step = decode_operators(deployment, float(batch), workload.mid_answer_tokens)
    alone = prefill_operators(deployment, new, cached)
    busy = prefill_operators(deployment, new, cached, float(ranks))
    return Row(
        measurement,
        deployment,
        keys_of(deployment),
        running,
        batch,
        workload.concurrency or running,
        tuple(pieces(deployment, step, float(batch))),
        tuple(pieces(deployment, alone, new)),
        tuple(pieces(deployment, busy, new * ranks)),
    )


def regimes(rows: Sequence[Row]) -> np.ndarray:
    """The regime of each row."""
    return np.array([row.regime for row in rows])
