"""What a worker writes is read again; whatever else comes is refused, and never repeated."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.calc.dtypes import Dtype
from app.machine.peaks.outcome import (
    LONGEST_S,
    SHORTEST_S,
    Failure,
    Fault,
    Outcome,
    ProductRate,
    Progress,
    Skipped,
    SkipReason,
    Stream,
    StreamRate,
    Timing,
    line_of,
    timing_of,
)
from app.machine.peaks.runner import GarbledLineError, said_in

TIMINGS = st.lists(st.floats(SHORTEST_S, LONGEST_S), min_size=1, max_size=4).map(timing_of)
OUTCOMES = st.builds(
    Outcome,
    library=st.sampled_from(["torch", "cupy"]),
    versions=st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3),
    card_name=st.text(max_size=20),
    memory_total_bytes=st.integers(0, 2**45),
    streams=st.lists(st.builds(StreamRate, st.sampled_from(Stream), st.integers(1, 2**40), TIMINGS), max_size=3).map(
        tuple
    ),
    products=st.lists(st.builds(ProductRate, st.sampled_from(Dtype), st.integers(1, 2**16), TIMINGS), max_size=3).map(
        tuple
    ),
    skipped=st.lists(
        st.builds(
            Skipped,
            st.sampled_from([*Stream, *Dtype]),
            st.none() | st.integers(1, 2**16),
            st.sampled_from(SkipReason),
        ),
        max_size=3,
    ).map(tuple),
)
SAID = (
    OUTCOMES
    | st.builds(Progress, st.sampled_from(["copy", "bf16 4096", "fp8 16384"]), st.integers(0, 9), st.just(10))
    | st.builds(Failure, st.sampled_from(Fault), st.text(max_size=20))
)
GOOD = line_of(
    Outcome("torch", {"torch": "2"}, "a card", 2**34, (StreamRate(Stream.COPY, 2**30, Timing(9, 2e-3, 1e-3)),), ())
)


@settings(max_examples=40)
@given(SAID)
def test_what_is_said_is_heard(said: Outcome | Progress | Failure) -> None:
    line = line_of(said)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert said_in(line) == said


@settings(max_examples=40)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused(line: bytes) -> None:
    with pytest.raises(GarbledLineError):
        said_in(line)


@settings(max_examples=40)
@given(st.integers(0, len(GOOD) - 1), st.binary(min_size=1, max_size=4))
def test_a_line_that_was_tampered_with_says_what_can_be_or_nothing(at: int, put: bytes) -> None:
    with suppress(GarbledLineError):
        said = said_in(GOOD[:at] + put + GOOD[at + len(put) :])
        assert isinstance(said, Outcome)
        assert all(rate.best_bytes_per_s > 0 for rate in said.streams)


def test_a_refusal_does_not_repeat_the_line() -> None:
    with pytest.raises(GarbledLineError, match=r"^This is no line of the worker\.$") as caught:
        said_in(b'{"outcome": "the secret"}')
    assert caught.value.__suppress_context__


def test_a_number_that_is_none_never_leaves_the_worker() -> None:
    rate = StreamRate(Stream.COPY, 1, Timing(1, 1.0, 1.0))
    object.__setattr__(rate.timing, "best_s", float("nan"))
    with pytest.raises(ValueError, match="JSON"):
        line_of(Outcome("torch", {}, "", 1, (rate,), ()))


def changed(**parts: object) -> bytes:
    told = json.loads(GOOD)
    told["outcome"] |= parts
    return json.dumps(told).encode()


TIMING = {"iterations": 1, "median_s": 1e-3, "best_s": 1e-3}
STREAM = {"stream": "copy", "array_bytes": 1, "timing": TIMING}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"{}",
        b"[]",
        b"null",
        b'{"progress": null}',
        b'{"progress": {"step": "copy", "done": 0, "of": 2}, "failure": {"fault": "timeout"}}',
        b'{"progress": {"step": "<script>", "done": 0, "of": 2}}',
        b'{"progress": {"step": "copy", "done": 2, "of": 2}}',
        b'{"progress": {"step": "copy", "done": 0.5, "of": 2}}',
        b'{"failure": {"fault": "no such fault"}}',
        b"[" * 30_000,
        b'{"outcome": ' * 10_000,
        b'{"failure": {"fault": "timeout", "detail": "\\ud800"}}',
        changed(memory_total_bytes="many"),
        changed(memory_total_bytes=1.5),
        changed(memory_total_bytes=True),
        changed(versions=["torch"]),
        changed(versions={"torch": 2}),
        changed(streams=[STREAM | {"stream": "scale"}]),
        changed(streams=[STREAM | {"array_bytes": 0}]),
        changed(streams=[STREAM | {"array_bytes": 10**40}]),
        changed(streams=[STREAM | {"timing": TIMING | {"best_s": float("nan")}}]),
        changed(streams=[STREAM | {"timing": TIMING | {"median_s": float("inf")}}]),
        changed(streams=[STREAM | {"timing": TIMING | {"best_s": -1e-3}}]),
        changed(streams=[STREAM | {"timing": TIMING | {"best_s": 2e-3}}]),
        changed(streams=[STREAM | {"timing": TIMING | {"iterations": 0}}]),
        changed(products=[{"dtype": "fp128", "size": 4096, "timing": TIMING}]),
        changed(skipped=[{"kind": "fp8", "size": None, "reason": "laziness"}]),
    ],
    ids=lambda line: f"{len(line)}-{line[-60:]!r}",
)
def test_what_no_worker_writes(line: bytes) -> None:
    with pytest.raises(GarbledLineError):
        said_in(line)
