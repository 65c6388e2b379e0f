"""Published evidence beside the optimizations: what others measured of each, in our words, with its source."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.calc.optimize.registry import SPECS
from app.learn.number import LiveNumber, written
from app.learn.published import FILE, load_published

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
