"""Whatever is pasted, the answer is a reading that makes a scenario, or one refusal."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog.catalog import Catalog, load_catalog
from app.engine_io.logs.findings import LogError
from app.engine_io.logs.reader import read_log
from tests.engine_io.logs import logs
from tests.engine_io.logs.test_reader import scenario_of

CATALOG = load_catalog()
LOGS = [log for _, log in logs.EVERY_LOG]
LINES = [line for log in LOGS for line in log.splitlines()]


def check(text: str) -> None:
    try:
        reading = read_log(text, CATALOG)
    except LogError:
        return
    scenario_of(reading)


@pytest.mark.parametrize(("engine", "log"), logs.EVERY_LOG)
def test_a_log_cut_short_at_any_line_or_character(catalog: Catalog, engine: str, log: str) -> None:
    lines = log.splitlines(keepends=True)
    for end in range(len(lines) + 1):
        check("".join(lines[:end]))
        check("".join(lines[end:]))
    chance = random.Random(log)
    for _ in range(40):
        check(log[: chance.randrange(len(log))])


@given(st.permutations(range(16)), st.sampled_from(LOGS))
def test_lines_in_any_order(order: list[int], log: str) -> None:
    lines = log.splitlines()
    check("\n".join(lines[index % len(lines)] for index in order))


@given(st.lists(st.sampled_from(LINES), max_size=30))
def test_lines_of_any_engines(lines: list[str]) -> None:
    check("\n".join(lines))


@given(st.binary(max_size=2000))
def test_any_bytes(data: bytes) -> None:
    check(data.decode("utf-8", "replace"))
    check(data.decode("latin-1"))


@given(st.sampled_from(LOGS), st.text(max_size=30), st.integers(min_value=0, max_value=4000), st.integers(0, 60))
def test_a_log_with_anything_written_over_it(log: str, text: str, at: int, length: int) -> None:
    check(log[:at] + text + log[at + length :])


@given(
    st.sampled_from(LOGS), st.sampled_from(["0", "-1", "1e999", "99999999999999999999", "NaN", "1,0", ".", "9" * 300])
)
def test_a_log_with_its_numbers_replaced(log: str, number: str) -> None:
    for digit in "0123456789":
        check(log.replace(digit, number))
