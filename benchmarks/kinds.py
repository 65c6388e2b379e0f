"""What the kinds of layers cost: one evaluation, and a point of a sweep, against a plain dense model."""

from collections.abc import Callable

import numpy as np

from app.calc.sweep import decode_sweep
from app.catalog.catalog import load_catalog
from app.scenario.answer import answer
from app.scenario.scenario import Scenario
from benchmarks.timing import best_of, table

SIDE, LOOP = 300, 50
MODELS = (
    ("llama-3.1-8b", "dense", 1),
    ("gemma-3-27b", "windows", 1),
    ("deepseek-v3", "MLA, experts, eight GPUs", 8),
    ("qwen3-next-80b-a3b", "recurrent states, experts", 1),
    ("nemotron-3-super-120b-a12b", "three kinds of layers", 1),
    ("deepseek-v4-flash", "compressed rows", 1),
)


def run() -> None:
    """Print one row a model; every time stands beside that of the dense one."""
    catalog = load_catalog()
    batch, context = np.geomspace(1, 4096, SIDE), np.geomspace(128, 131_072, SIDE)

    def each(action: Callable[[], object]) -> float:
        return best_of(lambda: [action() for _ in range(LOOP)]) / LOOP

    rows: list[tuple[str, str, float, float]] = []
    for id_, what, ranks in MODELS:
        document = {"model": {"id": id_}, "hardware": {"id": "h200-sxm"}, "parallelism": {"tensor": ranks}}
        scenario = Scenario.model_validate(document)
        deployment = answer(scenario, catalog).evaluation.deployment
        evaluated_s = each(lambda scenario=scenario: answer(scenario, catalog))  # type: ignore[misc]
        swept_s = best_of(lambda deployment=deployment: decode_sweep(deployment, batch, context))  # type: ignore[misc]
        rows.append((id_, what, evaluated_s, swept_s / (SIDE * SIDE)))
    dense_s, dense_point_s = rows[0][2], rows[0][3]
    table(
        "One evaluation and one point of a sweep, by kind of model",
        ("model", "what", "evaluation, ms", "of the dense one", "a point, µs", "of the dense one"),
        [
            (id_, what, f"{1e3 * s:.2f}", f"{s / dense_s:.1f}", f"{1e6 * point:.3f}", f"{point / dense_point_s:.1f}")
            for id_, what, s, point in rows
        ],
    )
