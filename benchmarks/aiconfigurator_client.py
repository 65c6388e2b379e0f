"""Asks aiconfigurator, which lives in a virtual environment of its own: `make bench-predictors` makes it."""

import json
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.calc.deployment import Deployment
from app.catalog.measurements import Measurement
from benchmarks.aiconfigurator_questions import NotAskableError, question

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv-aiconfigurator" / "bin" / "python"
WORKER = ROOT / "benchmarks" / "aiconfigurator_worker.py"
HOW_TO_MAKE_IT = """
aiconfigurator is not installed, so its rows are missing. It lives in an environment of its own, which
`make bench-predictors` makes, or by hand (Python 3.11 to 3.13, Linux on x86-64):
  python3 -m venv .venv-aiconfigurator
  .venv-aiconfigurator/bin/python -m pip install --no-deps -r requirements/aiconfigurator.txt"""


@dataclass(frozen=True, slots=True)
class Replies:
    """Answers by the measurement's id, why others have none, and what it took to be ready."""

    version: str
    import_s: float
    answers: Mapping[str, Mapping[str, Any]]
    refusals: Mapping[str, str]

    @property
    def load_s(self) -> float:
        """Seconds that its data took to load, all of them."""
        return sum(float(answer["load_s"]) for answer in self._distinct)

    @property
    def first_s(self) -> Sequence[float]:
        """Seconds of the first answer about each question, without its data's loading."""
        return [float(answer["first_s"]) - float(answer["load_s"]) for answer in self._distinct]

    @property
    def data(self) -> Mapping[tuple[str, str, str, str], int]:
        """Cells by system, engine, version of the data and mode."""
        return Counter((a["system"], a["backend"], a["version"], a["mode"]) for a in self.answers.values())

    @property
    def over_cache(self) -> int:
        """Cells whose requests do not all find room in the cache by its own count; it answers as if they did."""
        return sum(bool(answer["is_over_cache"]) for answer in self.answers.values())

    @property
    def _distinct(self) -> Sequence[Mapping[str, Any]]:
        return list({id(answer): answer for answer in self.answers.values()}.values())


def is_installed() -> bool:
    """Whether its environment is there."""
    return PYTHON.exists()


def ask(cells: Sequence[tuple[Measurement, Deployment]], step_tokens: int | None = None) -> Replies:
    """Its answers about `cells`; a question that several metrics share is asked once.

    Raises:
        RuntimeError: the worker ended early.
    """
    refusals: dict[str, str] = {}
    asked: dict[str, list[str]] = {}
    for row, deployment in cells:
        try:
            line = json.dumps(question(row, deployment, step_tokens))
        except NotAskableError as error:
            refusals[row.id] = str(error)
        else:
            asked.setdefault(line, []).append(row.id)
    # -P: modules beside the worker must not stand in for those that it imports.
    command = [str(PYTHON), "-P", str(WORKER)]
    done = subprocess.run(command, input="\n".join(asked), capture_output=True, text=True, cwd=ROOT)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or len(lines) != len(asked) + 1:
        raise RuntimeError(f"aiconfigurator's worker ended early: {done.stderr[-500:]}")
    answers: dict[str, Mapping[str, Any]] = {}
    for (line, ids), answer in zip(asked.items(), lines[1:], strict=True):
        if "refused" in answer:
            refusals |= dict.fromkeys(ids, answer["refused"])
        else:
            put = json.loads(line)
            answers |= dict.fromkeys(ids, answer | {"system": put["system"], "backend": put["backend"]})
    return Replies(lines[0]["version"], lines[0]["import_s"], answers, refusals)
