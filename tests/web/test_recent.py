"""The memory of recent answers: bounded in number, in bytes and in time."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.web.recent import Recent


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recent(clock: Clock) -> Iterator[Recent[str, str]]:
    memory: Recent[str, str] = Recent(3, 100, clock)
    yield memory
    assert memory.size_bytes <= 100
    assert len(memory) <= 3


def test_a_value_is_held_until_its_time_is_up(recent: Recent[str, str], clock: Clock) -> None:
    recent.put("a", "A", 10, 60)
    clock.now = 59.9
    assert recent.get("a") == "A"
    clock.now = 60
    assert recent.get("a") is None
    assert (len(recent), recent.size_bytes) == (0, 0)


def test_the_least_recently_used_goes_first(recent: Recent[str, str]) -> None:
    for key in "abc":
        recent.put(key, key, 10, 60)
    assert recent.get("a") == "a"
    recent.put("d", "d", 10, 60)
    assert [recent.get(key) for key in "abcd"] == ["a", None, "c", "d"]


def test_a_large_value_takes_the_room_of_several(recent: Recent[str, str]) -> None:
    for key in "abc":
        recent.put(key, key, 30, 60)
    recent.put("d", "d", 70, 60)
    assert [recent.get(key) for key in "abcd"] == [None, None, "c", "d"]


def test_a_value_larger_than_all_the_room_is_not_held(recent: Recent[str, str]) -> None:
    recent.put("a", "A", 10, 60)
    recent.put("b", "B", 101, 60)
    assert (recent.get("a"), recent.get("b")) == ("A", None)


def test_a_newer_value_takes_the_place_of_an_older(recent: Recent[str, str]) -> None:
    recent.put("a", "old", 60, 60)
    recent.put("a", "new", 50, 60)
    assert (recent.get("a"), recent.size_bytes) == ("new", 50)


@pytest.mark.parametrize("lifetime_s", [0, -1])
def test_no_lifetime_is_no_memory(recent: Recent[str, str], lifetime_s: float) -> None:
    recent.put("a", "old", 10, 60)
    recent.put("a", "A", 10, lifetime_s)
    assert recent.get("a") is None


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 150), st.integers(0, 5)), max_size=60))
def test_the_bounds_hold_whatever_is_put(puts: list[tuple[int, int, int]]) -> None:
    clock = Clock()
    memory: Recent[int, int] = Recent(3, 100, clock)
    for key, size, lifetime in puts:
        memory.put(key, size, size, lifetime)
        clock.now += 1
        assert len(memory) <= 3
        assert memory.size_bytes <= 100
        held = [memory.get(known) for known in range(10)]
        assert memory.size_bytes == sum(size for size in held if size is not None)
