"""Files of results in the published formats, made for these tests, and scenarios of the stacks they are of."""

from pathlib import Path
from typing import Any

from app.features.benchmarks.points import BenchPoint
from app.features.benchmarks.reader import read
from app.scenario.scenario import Scenario

FOLDER = Path(__file__).resolve().parents[2] / "data" / "benchmarks"
RESULTS = sorted(file.name for file in FOLDER.iterdir() if file.suffix != ".sql")


def contents(name: str) -> bytes:
    """A file of results."""
    return (FOLDER / name).read_bytes()


def points(name: str) -> tuple[BenchPoint, ...]:
    """Its runs."""
    return read(contents(name))


def served(**changes: Any) -> Scenario:
    """What the files of servers are of: Llama 3.1 8B on one H100."""
    document: dict[str, Any] = {
        "model": {"id": "llama-3.1-8b"},
        "hardware": {"id": "h100-sxm-80gb"},
        "precision": {"weights": "bf16"},
    }
    return Scenario.model_validate(document | changes)


def bare() -> Scenario:
    """What the files of llama-bench are of: the same in 8 bits on an RTX 4090."""
    return served(
        hardware={"id": "rtx-4090"},
        engine={"id": "llama.cpp"},
        precision={"weights": "int8", "kv_cache": "fp16"},
    )
