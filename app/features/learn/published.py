"""Figures that others measured and published, and the few examples that a lesson needs, each with its source.

Published evidence beside the optimizations: what others measured of each, in our words, with its source.

The words of the field, one definition each, for every page that needs them.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.calc.optimize.registry import SPECS
from app.features.learn.case import Case, Desk
from app.features.learn.number import LiveNumber, written

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


_PLACE = re.compile(r"\{([a-z0-9_.]+)\}")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One published finding. `text` holds each of `numbers` as it is written; `url` is empty where there is no page."""

    technique: str
    text: str
    numbers: tuple[LiveNumber, ...]
    source: str
    url: str = ""


@lru_cache(maxsize=1)
def load_evidence(file: Path = FILE) -> Mapping[str, Sequence[Evidence]]:
    """The findings of the file, by optimization, in its order.

    Raises:
        ValueError: a finding of an unknown optimization or without a source, or a number that is not given.
    """
    found: dict[str, list[Evidence]] = {spec.id: [] for spec in SPECS}
    for row in tomllib.loads(file.read_text(encoding="utf-8"))["evidence"]:
        evidence = _evidence(row)
        if evidence.technique not in found:
            raise ValueError(f"evidence of an unknown optimization: {evidence.technique}")
        found[evidence.technique].append(evidence)
    return found


def _evidence(row: Mapping[str, Any]) -> Evidence:
    if not row["source"]:
        raise ValueError(f"evidence of {row['door']} has no source")
    own = {value["id"]: value for value in row.get("values", ())}
    numbers: dict[str, LiveNumber] = {}
    for id_ in _PLACE.findall(row["text"]):
        numbers[id_] = _number(row, own[id_]) if id_ in own else load_published().number(id_)
    if own.keys() - numbers.keys():
        raise ValueError(f"evidence of {row['door']} leaves numbers out: {sorted(own.keys() - numbers.keys())}")
    text = _PLACE.sub(lambda place: numbers[place[1]].text, row["text"])
    return Evidence(row["door"], text, tuple(numbers.values()), row["source"], row.get("url", ""))


def _number(row: Mapping[str, Any], value: Mapping[str, Any]) -> LiveNumber:
    text = written(value["value"], value["unit"], value["digits"])
    id_, label = f"evidence.{row['door']}.{value['id']}", value["label"]
    return LiveNumber(id_, label, value["value"], value["unit"], text, row["source"])


GLOSSARY_FILE = Path(__file__).resolve().parent / "data" / "glossary.toml"


@dataclass(frozen=True, slots=True)
class Word:
    """A word with what it means. `chapter` is where the lesson explains it; `short` names what letters stand for."""

    id: str
    word: str
    meaning: str
    chapter: str
    short: str = ""


@lru_cache(maxsize=1)
def load_glossary(file: Path = GLOSSARY_FILE) -> Mapping[str, Word]:
    """Every word by id, in the order of the alphabet.

    Raises:
        ValueError: a word is defined twice.
    """
    rows = [Word(**row) for row in tomllib.loads(file.read_text(encoding="utf-8"))["word"]]
    words = {word.id: word for word in sorted(rows, key=lambda word: word.word.casefold())}
    if len(words) != len(rows):
        raise ValueError("a word is defined twice")
    return words
