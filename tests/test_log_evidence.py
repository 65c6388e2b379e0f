"""The evidence that the catalog of engines names is in the logs: as many as it says, and eight of ten within."""

import re
from collections import Counter

import pytest

from app.calc.memory.engines.rules import Law
from app.catalog.engines import load_engines
from tests.log_evidence import ENGINES, PARTS, laws_of, measured
from tests.logged_starts import logs

ENOUGH = 8
"""Fewer logs say nothing about eight of ten."""
cases = pytest.mark.parametrize(("engine", "part"), [(e, p) for e in ENGINES for p in PARTS if getattr(laws_of(e), p)])


@cases
def test_a_law_rests_on_as_many_logs_as_it_says(engine: str, part: str) -> None:
    law, found = getattr(laws_of(engine), part), measured(engine, part)
    assert law.n == len(found)
    words = law.words if isinstance(law, Law) else law.evidence.replace("{n}", str(law.n))
    assert "{" not in words
    assert bool(found) == (str(len(found)) in words), words
    told = re.search(r"([\d.]+) to ([\d.]+) GiB", words)
    if told and "desktops" not in words:
        values = sorted(one.value for one in found)
        for text, value in zip(told.groups(), (values[0], values[-1]), strict=True):
            assert float(text) == pytest.approx(value, abs=0.5 * 10 ** -len(text.partition(".")[2]) + 1e-9)


@cases
def test_eight_of_ten_logs_lie_within(engine: str, part: str) -> None:
    found = measured(engine, part)
    if len(found) >= ENOUGH:
        assert sum(one.holds for one in found) >= 0.8 * len(found), [one.log.id for one in found if not one.holds]


def test_the_sources_count_the_logs() -> None:
    counted, engines = Counter(log.engine for log in logs()), load_engines()
    for engine in ENGINES:
        assert any(source.startswith(f"{counted[engine]} start-up logs") for source in engines[engine].sources)
