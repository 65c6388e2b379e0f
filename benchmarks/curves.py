"""Expected pace of a user against throughput of a GPU, drawn over published points: the figures of docs/expected.md.

`python -m benchmarks.curves` writes an SVG a curve into docs/curves/ and prints the points beside their predictions.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.calc.measure import measure
from app.catalog.catalog import Catalog, load_catalog
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario
from benchmarks.pace_plot import Line, Mark, plot
from benchmarks.timing import table

ROOT = Path(__file__).resolve().parent
POINTS = ROOT / "data" / "curves.csv"
FOLDER = ROOT.parent / "docs" / "curves"
CROWDS = (2, 4, 8, 16, 32, 64, 128, 256, 512)


@dataclass(frozen=True, slots=True)
class Curve:
    """A deployment over its concurrency."""

    id: str
    title: str
    scenario: Mapping[str, object]
    prompt_tokens: int
    output_tokens: int


CURVES = (
    Curve(
        "deepseek-r1-8xh200",
        "DeepSeek-R1 (FP8) on 8 × H200, SGLang, 1,024 + 1,024 tokens",
        {
            "model": {"id": "deepseek-r1"},
            "hardware": {"id": "h200-sxm"},
            "parallelism": {"tensor": 8},
            "engine": {"id": "sglang"},
        },
        1024,
        1024,
    ),
    Curve(
        "gpt-oss-120b-b200",
        "gpt-oss-120b (MXFP4) on one B200, vLLM, 1,024 + 1,024 tokens",
        {"model": {"id": "gpt-oss-120b"}, "hardware": {"id": "b200-sxm"}, "engine": {"id": "vllm"}},
        1024,
        1024,
    ),
    Curve(
        "llama-3.3-70b-fp8-4xh100",
        "Llama-3.3-70B in FP8 on 4 × H100, vLLM, 1,024 + 1,024 tokens",
        {
            "model": {"id": "llama-3.3-70b"},
            "hardware": {"id": "h100-sxm-80gb"},
            "precision": {"weights": "fp8"},
            "parallelism": {"tensor": 4},
            "engine": {"id": "vllm"},
        },
        1024,
        1024,
    ),
)


def main() -> None:
    """Draw every curve and print its points."""
    catalog = load_catalog()
    with POINTS.open(encoding="utf-8", newline="") as lines:
        points = list(csv.DictReader(lines))
    FOLDER.mkdir(exist_ok=True)
    for curve in CURVES:
        own = [row for row in points if row["curve"] == curve.id]
        (FOLDER / f"{curve.id}.svg").write_text(_drawn(catalog, curve, own), encoding="utf-8")
        rows = []
        for row in own:
            crowd, measured = int(row["concurrency"]), float(row["tpot_s"])
            low, mid, high = _tpot(catalog, curve, crowd)
            inside = "yes" if low <= measured <= high else "no"
            rows.append((f"{crowd:,}", f"{1e3 * measured:.2f}", f"{1e3 * mid:.2f}", f"{mid / measured:.2f}", inside))
        table(curve.title, ("requests", "TPOT measured, ms", "expected, ms", "ratio", "in the interval"), rows)


def _tpot(catalog: Catalog, curve: Curve, crowd: int) -> tuple[float, float, float]:
    workload = {"prompt_tokens": curve.prompt_tokens, "output_tokens": curve.output_tokens, "concurrency": crowd}
    asked = Scenario.model_validate({**curve.scenario, "workload": workload})
    found = measure(resolve(asked, catalog).deployment).serving.tpot_s
    return found.low or found.best_known, found.best_known, found.high or found.best_known


def _drawn(catalog: Catalog, curve: Curve, points: Sequence[Mapping[str, str]]) -> str:
    asked = Scenario.model_validate(dict(curve.scenario))
    gpus = resolve(asked, catalog).deployment.gpus

    def place(crowd: int, tpot_s: float) -> tuple[float, float]:
        return 1 / tpot_s, crowd / tpot_s / gpus

    told = [(crowd, *_tpot(catalog, curve, crowd)) for crowd in CROWDS]
    low = [place(crowd, high) for crowd, _, _, high in told]
    high = [place(crowd, low_s) for crowd, low_s, _, _ in told]
    marks = [Mark(*place(int(p["concurrency"]), float(p["tpot_s"])), p["concurrency"]) for p in points]
    line = Line([place(crowd, mid) for crowd, _, mid, _ in told], [*low, *reversed(high)])
    return plot(curve.title, line, marks)


if __name__ == "__main__":
    main()
