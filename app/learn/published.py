"""Figures that others measured and published, and the few examples that a lesson needs, each with its source."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from app.learn.case import Case
from app.learn.desk import Desk
from app.learn.number import LiveNumber, written

FILE = Path(__file__).resolve().parent / "data" / "published.toml"


@dataclass(frozen=True, slots=True)
class Fact:
    """One published figure. `url` is empty where the source is no page."""

    id: str
    label: str
    value: float
    unit: str
    digits: int
    source: str
    url: str = ""

    @property
    def number(self) -> LiveNumber:
        """The figure as a number of the lesson."""
        return LiveNumber(
            f"published.{self.id}",
            self.label,
            self.value,
            self.unit,
            written(self.value, self.unit, self.digits),
            self.source,
        )


@dataclass(frozen=True, slots=True)
class Published:
    """All of them by id."""

    facts: Mapping[str, Fact]

    def value(self, id_: str) -> float:
        """The figure itself."""
        return self.facts[id_].value

    def number(self, id_: str) -> LiveNumber:
        """It as a number of the lesson."""
        return self.facts[id_].number


def promises(desk: Desk, asked: Case, published: Published) -> tuple[LiveNumber, LiveNumber]:
    """What is promised for the first token and for each further one: the scenario's targets, or the examples."""
    workload = asked.deployment.workload
    found = []
    for key, label, own, usual in (
        ("first", "promised for the first token", workload.slo_ttft_s, "ttft_s"),
        ("each", "promised for each token", workload.slo_tpot_s, "tpot_s"),
    ):
        if own is None:
            found.append(
                desk.given(key, label, published.value(f"targets.{usual}"), "s", f"published.targets.{usual}", 3)
            )
        else:
            found.append(desk.given(key, label, own, "s", f"scenario.workload.slo_{usual}", 3, asked.key))
    return found[0], found[1]


@lru_cache(maxsize=1)
def load_published(file: Path = FILE) -> Published:
    """The facts of the file.

    Raises:
        ValueError: a fact without a source.
    """
    rows = tomllib.loads(file.read_text(encoding="utf-8"))["fact"]
    facts = {row["id"]: Fact(**row) for row in rows}
    unsourced = [fact.id for fact in facts.values() if not fact.source]
    if unsourced or len(facts) != len(rows):
        raise ValueError(f"facts without a source, or given twice: {unsourced}")
    return Published(facts)
