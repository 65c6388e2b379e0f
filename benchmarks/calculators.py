"""The calculators: a sweep of a million points, and one evaluation with every derivation."""

import numpy as np

from app.calc.evaluate import evaluate
from app.calc.model.attention_variants import Alternative
from app.calc.sweep import decode_sweep
from app.catalog.catalog import load_catalog
from app.checkpoint.text import dumps
from app.features.workbench.charts.gallery import all_charts
from app.scenario.answer import answer
from app.scenario.document import document
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario, default_scenario
from benchmarks.timing import best_of, table

ALL_TECHNIQUES = {
    "model": {"id": "llama-3.1-8b"},
    "hardware": {"id": "h200-sxm"},
    "precision": {"weights": "fp8", "kv_cache": "fp8"},
    "workload": {
        "concurrency": 64,
        "answer_shape": "exponential",
        "longest_answer": 2000,
        "shared_prefix_tokens": 500,
    },
    "techniques": {
        "speculative": {"method": "eagle", "draft_tokens": 3, "acceptance_length": 2.8},
        "disaggregation": {"hardware": {"id": "h100-sxm-80gb"}, "instances": 2},
        "chunked_prefill": True,
        "static_batching": True,
        "attention": "mla",
    },
}
SIDE = 1_000
LOOP = 200


def run() -> None:
    """Print both tables."""
    catalog = load_catalog()
    deployment = resolve(default_scenario(), catalog).deployment
    batch, context = np.geomspace(1, 4096, SIDE), np.geomspace(128, 131_072, SIDE)
    grid = np.outer(batch, context)
    copy_s = best_of(lambda: grid * 1.0)
    sweep_s = best_of(lambda: decode_sweep(deployment, batch, context))
    points = SIDE * SIDE
    table(
        f"Sweep of {points:,} (concurrency × context) points, one core",
        ("what", "ms", "µs a point", "of a NumPy multiplication of the grid"),
        [
            ("NumPy: grid × 1.0", f"{1e3 * copy_s:.2f}", f"{1e6 * copy_s / points:.4f}", "1.0"),
            (
                "decode sweep, expected TPOT too",
                f"{1e3 * sweep_s:.2f}",
                f"{1e6 * sweep_s / points:.4f}",
                f"{sweep_s / copy_s:.1f}",
            ),
        ],
    )

    cards = [Alternative(catalog.devices[id_], 1024) for id_ in ("h200-sxm", "b200-sxm")]
    answered = answer(default_scenario(), catalog)
    body = dumps(document(answered))

    def each(action: object) -> float:
        return best_of(lambda: [action() for _ in range(LOOP)]) / LOOP  # type: ignore[operator]

    def explained() -> list[str]:
        return [explanation.substituted for explanation in evaluate(deployment, cards).explanations]

    def expected() -> object:
        return evaluate(deployment).measures.serving

    combined = resolve(Scenario.model_validate(ALL_TECHNIQUES), catalog).deployment
    base = each(lambda: dumps({"a": [1.0] * 100}))
    rows = [
        ("JSON of a hundred numbers", base),
        ("one evaluation, expected values and intervals", each(expected)),
        ("one evaluation, all techniques at once", each(lambda: evaluate(combined).measures.serving)),
        ("one evaluation, derivations written out", each(explained)),
        ("scenario to answer (validate, resolve, evaluate)", each(lambda: answer(default_scenario(), catalog))),
        ("answer to document", each(lambda: document(answered))),
        (f"document to JSON ({len(body):,} B)", each(lambda: dumps(document(answered)))),
        ("six figures", each(lambda: all_charts(answered.evaluation))),
    ]
    table(
        "One scenario",
        ("what", "ms", "of the JSON of a hundred numbers"),
        [(name, f"{1e3 * seconds:.3f}", f"{seconds / base:.1f}") for name, seconds in rows],
    )
