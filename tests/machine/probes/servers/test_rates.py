"""Counters between two scrapes."""

from hypothesis import given
from hypothesis import strategies as st

from app.machine.probes.servers.window import Growth, growth

_COUNTS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 1000).map(float), max_size=4)


def test_series_grow_together() -> None:
    assert growth({"a": 1.0, "b": 5.0}, {"a": 4.0, "b": 5.0}) == Growth(3.0, 2)
    assert Growth(3.0, 2).mean == 1.5
    assert Growth().mean == 0


def test_one_series_that_falls_means_that_the_server_began_anew() -> None:
    assert growth({"a": 1.0, "b": 5.0}, {"a": 4.0, "b": 4.0}) is None


def test_a_series_that_appears_counts_from_its_first_value() -> None:
    assert growth({"a": 1.0}, {"a": 2.0, "new": 1_000_000.0}) == Growth(1.0, 1)
    assert growth({"a": 1.0, "gone": 7.0}, {"a": 2.0}) == Growth(1.0, 1)


@given(_COUNTS, _COUNTS)
def test_growth_is_never_negative_and_is_the_sum_of_its_series(
    before: dict[str, float], steps: dict[str, float]
) -> None:
    after = {key: before.get(key, 0.0) + step for key, step in steps.items()}
    grown = growth(before, after)
    assert grown == Growth(sum(steps[key] for key in steps if key in before), len(steps.keys() & before.keys()))


@given(_COUNTS, _COUNTS)
def test_any_fall_is_noticed(before: dict[str, float], after: dict[str, float]) -> None:
    fell = any(after[key] < before[key] for key in after.keys() & before.keys())
    assert (growth(before, after) is None) == fell
