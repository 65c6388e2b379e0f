"""The requests of the corpus. They know the public faces alone: the JSON API, the exports and the pages."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

INPUTS = Path(__file__).with_name("inputs.json")
API = "/api/v1"
FORMATS = (None, "fp8", "int4", "bf16", "native", "int8", "mxfp4", "nvfp4", "fp16")
CACHES = ("bf16", "fp8", "bf16", "int8")
BATCHES = (1, 64, 8, None, 512)
LENGTHS = ((1000, 500), (128, 2000), (8000, 300), (30_000, 1000), (1, 1))
SPLITS: tuple[dict[str, int], ...] = ({}, {"tensor": 2}, {"tensor": 4}, {"tensor": 8}, {"data": 2}, {"pipeline": 2})
ENGINES = ("vllm", "sglang", "vllm", "tensorrt-llm", "llama.cpp", "ideal")
CHARTS = ("gap", "roofline", "batch", "memory", "frontier", "time", "context", "goodput", "door-quantization")
COMPARED_CHARTS = ("compare-roofline", "compare-tradeoff", "compare-memory", "compare-time")
LISTS = (
    "models",
    "models?attention=latent",
    "hardware",
    "hardware?vendor=AMD",
    "engines",
    "validation",
    "openapi.json",
)
PAGES = (
    *("/", "/?units=gib", "/learn", "/doors", "/compare", "/models", "/hardware", "/validation", "/paste", "/import"),
    *("/benchmarks", "/models/custom", "/hardware/custom", "/production", "/docs", "/models?kind=experts", "/nowhere"),
    *("/?model=llama-3.1-9b&hw=h100", "/?model=llama-3.1-8b&hw=h100-sxm-80gb&batch=0&tp=x", "/validation?engine=vllm"),
    *(
        "/hardware?sort=bandwidth",
        "/models?sort=-params",
        "/validation?by=regime",
        "/validation?page=2",
        "/learn?chat=9",
    ),
)


@dataclass(frozen=True, slots=True)
class Case:
    """One request. `form` says that `body` is sent as the fields of a form, not as JSON."""

    id: str
    path: str
    body: Any = None
    form: bool = False


@cache
def inputs() -> Mapping[str, Any]:
    """What follows from no rule: scenarios drawn by chance, texts, configurations, the ids of the catalog that day."""
    found: dict[str, Any] = json.loads(INPUTS.read_text(encoding="utf-8"))
    return found


def cases() -> Sequence[Case]:
    """All of them, each with an id of its own."""
    return [*_evaluations(), *_documents(), *_lists(), *_pages(), *_exports(), *_readings()]


def sample(found: Sequence[Case]) -> Sequence[Case]:
    """Some of every kind; half a minute of one core at most."""
    by_kind: dict[str, list[Case]] = {}
    for case in found:
        by_kind.setdefault(case.id.partition("/")[0], []).append(case)
    return [case for kind in by_kind.values() for case in kind[len(kind) // 7 :: max(1, len(kind) // 9)]]


def _evaluations() -> Iterator[Case]:
    asked = inputs()
    for (row, model), (column, cards) in product(enumerate(asked["models"]), enumerate(asked["accelerators_by_class"])):
        card = cards[(7 * row + column) % len(cards)]
        yield Case(f"model/{model}/{card}", f"{API}/evaluate", _ruled(model, card, 3 * row + column))
    for row, card in enumerate(asked["accelerators"]):
        yield Case(f"accelerator/{card}", f"{API}/evaluate", _ruled("llama-3.1-8b", card, 5 * row))
    for section in ("variety", "scenarios", "refusals"):
        for row, scenario in enumerate(asked[section]):
            yield Case(f"{section}/{row:04d}", f"{API}/evaluate", scenario)
    for name, scenario in asked["starts"]:
        yield Case(f"start/{name}", f"{API}/evaluate", scenario)
    for row, (name, config) in enumerate(asked["configs"]):
        scenario = _ruled("", "h200-sxm", row) | {"model": {"config": config, "name": name}}
        yield Case(f"config/{name}", f"{API}/evaluate", scenario)
    batch = {"scenarios": asked["scenarios"][:5]}
    yield Case("batch/of-five", f"{API}/evaluate/batch", batch)
    for row, query in enumerate(asked["queries"][:20]):
        yield Case(f"evaluate-by-query/{row:03d}", f"{API}/evaluate?{query}")


def _ruled(model: str, card: str, row: int) -> dict[str, Any]:
    """A scenario whose format, split, engine and load follow from its place: neighbours differ in each."""
    prompt, output = LENGTHS[row % len(LENGTHS)]
    precision = {"weights": FORMATS[row % len(FORMATS)], "kv_cache": CACHES[row // 2 % len(CACHES)]}
    return {
        "model": {"id": model},
        "hardware": {"id": card},
        "precision": precision,
        "parallelism": SPLITS[row // 3 % len(SPLITS)],
        "engine": {"id": ENGINES[row // 4 % len(ENGINES)]},
        "workload": {
            "prompt_tokens": prompt,
            "output_tokens": output,
            "concurrency": BATCHES[row // 7 % len(BATCHES)],
            "slo_ttft_s": 1.0 if row % 4 == 0 else None,
            "slo_tpot_s": 0.05 if row % 6 == 0 else None,
        },
    }


def _documents() -> Iterator[Case]:
    """Documents of a scenario other than its evaluation."""
    scenarios, queries = inputs()["scenarios"], inputs()["queries"]
    axes = {"concurrency": [1, 8, 64, 512], "context": {"start": 100, "stop": 100_000, "steps": 7, "scale": "log"}}
    for row, scenario in enumerate([*inputs()["variety"], *scenarios[:60]]):
        yield Case(f"doors/{row:03d}", f"{API}/doors", scenario)
        yield Case(f"launch/{row:03d}", f"{API}/launch", scenario)
        if row % 2 == 0:
            yield Case(f"sweep/{row:03d}", f"{API}/sweep", {"scenario": scenario, "axes": axes})
    for row, query in enumerate(queries[:30]):
        yield Case(f"learn/{row:03d}", f"{API}/learn?{query}")
    for row, query in enumerate(_compared()):
        yield Case(f"compare/{row:03d}", f"{API}/compare?{query}")


def _compared() -> Iterator[str]:
    """Queries of comparisons: two to four plans, the baseline in turn, the last with what no plan is."""
    queries = inputs()["queries"]
    for row in range(24):
        plans = queries[3 * row : 3 * row + 2 + row % 3]
        yield urlencode([*(("s", plan) for plan in plans), ("base", str(1 + row % len(plans)))])
    yield urlencode([("s", queries[0]), ("s", "model=nothing"), ("base", "3"), ("more", "1")])


def _lists() -> Iterator[Case]:
    for name in LISTS:
        yield Case(f"list/{name}", f"{API}/{name}")
    for name in inputs()["models"]:
        yield Case(f"model-json/{name}", f"{API}/models/{name}")
    for name in inputs()["accelerators"]:
        yield Case(f"accelerator-json/{name}", f"{API}/hardware/{name}")
    yield Case("model-json/none-such", f"{API}/models/llama-3.1-9b")


def _pages() -> Iterator[Case]:
    asked = inputs()
    queries: list[str] = asked["queries"]
    for path in PAGES:
        yield Case(f"page{path}", path)
    for row, query in enumerate(queries):
        yield Case(f"page-workbench/{row:03d}", f"/?{query}{'&units=gib' if row % 5 == 4 else ''}")
    for row, model in enumerate(asked["models"]):
        yield Case(f"page-model/{model}", f"/models/{model}")
        if row % 4 == 0:
            short = {"model": model, "hw": "h200-sxm", "batch": 4 + row, "w": "fp8", "tp": 1 + row % 8 // 4}
            yield Case(f"page-workbench/{model}", f"/?{urlencode(short)}")
    for row, card in enumerate(asked["accelerators"]):
        yield Case(f"page-accelerator/{card}", f"/hardware/{card}")
        if row % 12 == 0:
            yield Case(f"page-accelerator-copy/{card}", f"/hardware/custom?from={card}")
    for row, query in enumerate(queries[:45]):
        yield Case(f"page-launch/{row:03d}", f"/launch?{query}")
        yield Case(f"page-doors/{row:03d}", f"/doors?{query}{'&units=gib' if row % 5 == 4 else ''}")
        if row % 2:
            yield Case(f"page-learn/{row:03d}", f"/learn?{query}")
    for row, query in enumerate(_compared()):
        yield Case(f"page-compare/{row:03d}", f"/compare?{query}{'&equal=hide' if row % 4 == 3 else ''}")


def _exports() -> Iterator[Case]:
    for row, query in enumerate(inputs()["queries"][:18]):
        for chart in CHARTS:
            yield Case(f"csv/{row:03d}/{chart}", f"/export/{chart}.csv?{query}{'&units=gib' if row % 3 == 2 else ''}")
        yield Case(f"figure/{row:03d}", f"/export/{CHARTS[row % len(CHARTS)]}.json?{query}")
    for row, query in enumerate(list(_compared())[:4]):
        for chart in COMPARED_CHARTS:
            yield Case(f"csv-compare/{row:03d}/{chart}", f"/compare/{chart}.csv?{query}")


def _readings() -> Iterator[Case]:
    """What is read of logs, commands, configurations and benchmarks."""
    asked = inputs()
    chosen = {"hardware": {"id": "h100-sxm-80gb"}}
    for row, (name, text) in enumerate(asked["texts"]):
        yield Case(f"paste/{name}", f"{API}/paste", {"text": text})
        if not name.startswith("refused"):
            yield Case(f"paste-chosen/{name}", f"{API}/paste", {"text": text, "scenario": chosen})
        if row % 2 == 0:
            yield Case(f"page-paste/{name}", "/paste", {"text": text, "hw": "l40s"}, form=True)
    for row, (name, config) in enumerate(asked["configs"]):
        yield Case(f"import/{name}", f"{API}/import", {"config": config})
        if row % 10 == 0:
            yield Case(f"page-import/{name}", "/import", {"config": json.dumps(config)}, form=True)
    stack = {"model": {"id": "llama-3.1-8b"}, "hardware": {"id": "h100-sxm-80gb"}}
    for row, (name, text) in enumerate(asked["benchmarks"]):
        yield Case(f"benchmark/{name}", f"{API}/benchmarks", {"text": text, "scenario": stack})
        if row % 4 == 0:
            fields = {"text": text, "model": "llama-3.1-8b", "hw": "h100-sxm-80gb"}
            yield Case(f"page-benchmark/{name}", "/benchmarks", fields, form=True)
