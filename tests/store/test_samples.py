from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from app.store import samples as module
from app.store.errors import UnstorableError
from app.store.samples import Sample, Samples

FIGURES: Mapping[str, float] = {"power_draw_w": 412.3, "memory_used_bytes": 10 * 1024**3}
SECOND = timedelta(seconds=1)


@pytest.fixture
def samples(engine: Engine) -> Samples:
    return Samples(engine)


def sample(moment: datetime, source: str = "nvidia/0", **figures: float) -> Sample:
    return Sample(moment, source, figures or FIGURES)


def every(start: datetime, seconds: float, count: int, source: str = "nvidia/0") -> list[Sample]:
    return [sample(start + n * seconds * SECOND, source, running=float(n)) for n in range(count)]


def test_what_was_added_comes_back_in_utc_and_in_order(samples: Samples, now: datetime) -> None:
    east = now.astimezone(timezone(timedelta(hours=9)))
    samples.add([sample(east + SECOND, "host", cpu_percent=3), sample(now)])
    samples.add([])
    assert samples.between(now, now + 2 * SECOND) == (sample(now), sample(now + SECOND, "host", cpu_percent=3))
    assert samples.between(now, now + SECOND) == (sample(now),)
    assert samples.between(now, now + 2 * SECOND, "host") == (sample(now + SECOND, "host", cpu_percent=3),)
    assert samples.between(now + 2 * SECOND, now) == ()
    assert samples.sources() == ("host", "nvidia/0")
    assert samples.count() == 2


def test_source_says_one_thing_at_an_instant(samples: Samples, now: datetime) -> None:
    samples.add([sample(now, running=1)])
    samples.add([sample(now, running=2), sample(now, "host", cpu_percent=3), sample(now, "host", cpu_percent=4)])
    assert samples.between(now, now + SECOND) == (sample(now, "host", cpu_percent=3), sample(now, running=1))


@pytest.mark.parametrize(
    "changes",
    [
        {"taken_at": datetime(2026, 1, 1)},
        {"source": ""},
        {"source": "GPU-0b6c"},
        {"source": "0b6cc1d5-0000-4000-8000-0242ac120002"},
        {"source": "f0b6cc1d500004000800002421200020"},
        {"source": "10.0.0.7"},
        {"source": "node.example"},
        {"source": "host\n"},
        {"source": "=1+1"},
        {"figures": {"running": float("nan")}},
        {"figures": {"running": float("-inf")}},
        {"figures": {"running": 10**400}},
        {"figures": {"running": True}},
        {"figures": {"running": "7"}},
        {"figures": {"running": None}},
        {"figures": {"Running Now": 1.0}},
        {"figures": {f"figure_{n}": 1.0 for n in range(400)}},
    ],
    ids=[
        *("no zone", "nothing", "capital", "UUID", "plain UUID", "address", "host name", "line", "formula"),
        *("NaN", "infinite", "huge", "bool", "text", "None", "name", "many"),
    ],
)
def test_bad_sample_is_refused_by_name_and_nothing_of_the_round_is_kept(
    samples: Samples, now: datetime, changes: dict[str, Any]
) -> None:
    values: dict[str, Any] = {"taken_at": now, "source": "nvidia/0", "figures": FIGURES}
    with pytest.raises(UnstorableError, match=next(iter(changes))):
        samples.add([sample(now, "host"), Sample(**{**values, **changes})])
    assert samples.count() == 0


def test_thinning_keeps_the_first_and_the_last_of_each_slice(samples: Samples, now: datetime) -> None:
    samples.add(every(now + SECOND / 2, 1, 1_000))
    thinned = samples.between(now, now + 1_000 * SECOND, most_points=11)
    assert [one.figures["running"] for one in thinned] == [0, 99, 199, 299, 399, 499, 599, 699, 799, 899, 999]


def test_each_source_is_thinned_by_itself(samples: Samples, now: datetime) -> None:
    samples.add(every(now, 1, 100) + every(now + 7 * SECOND, 10, 5, "server-1"))
    thinned = samples.between(now, now + 100 * SECOND, most_points=20)
    assert len([one for one in thinned if one.source == "nvidia/0"]) == 20
    assert [one for one in thinned if one.source == "server-1"] == every(now + 7 * SECOND, 10, 5, "server-1")
    assert samples.between(now, now + 100 * SECOND, "server-1", 20) == tuple(every(now + 7 * SECOND, 10, 5, "server-1"))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 3_600_000_000), min_size=1, max_size=60, unique=True),
    st.integers(-1, 40),
)
def test_thinned_is_a_part_in_order_within_the_limit(
    engine: Engine, now: datetime, offsets_us: list[int], most_points: int
) -> None:
    samples = Samples(engine)
    samples.prune(now + timedelta(days=1))
    added = [sample(now + timedelta(microseconds=offset)) for offset in sorted(offsets_us)]
    samples.add(added)
    thinned = samples.between(now, added[-1].taken_at + timedelta(microseconds=1), most_points=most_points)
    assert {one.taken_at for one in thinned} <= {one.taken_at for one in added}
    assert all(before.taken_at < after.taken_at for before, after in pairwise(thinned))
    assert (thinned[0], thinned[-1]) == (added[0], added[-1])
    assert len(thinned) <= max(most_points, 2)


def test_stream_gives_every_sample_once_whatever_the_batch(
    samples: Samples, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STREAM_BATCH_ROWS", 3)
    added = [one for n in range(5) for one in (sample(now + n * SECOND, "host"), sample(now + n * SECOND))]
    samples.add(added)
    batches = list(samples.stream(now, now + 5 * SECOND))
    assert [len(batch) for batch in batches] == [3, 3, 3, 1]
    assert [one for batch in batches for one in batch] == added
    assert list(samples.stream(now + 5 * SECOND, now + 6 * SECOND)) == []


def test_stream_holds_no_transaction_between_batches(samples: Samples, now: datetime) -> None:
    samples.add(every(now, 1, 3))
    batches = samples.stream(now, now + 9 * SECOND)
    assert len(next(batches)) == 3
    samples.add([sample(now + 5 * SECOND)])
    assert next(batches) == (sample(now + 5 * SECOND),)  # a reader of one unchanging moment would not see it


def test_prune_takes_what_is_older_in_batches_and_writes_nothing_where_nothing_is(
    samples: Samples, engine: Engine, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PRUNE_BATCH_ROWS", 3)
    samples.add(every(now, 1, 10))
    assert samples.prune(now + 7 * SECOND) == 7
    said: list[str] = []

    @event.listens_for(engine, "before_cursor_execute")
    def listen(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        said.append(statement)

    assert samples.prune(now + 7 * SECOND) == 0
    assert "BEGIN IMMEDIATE" not in said
    assert [one.figures["running"] for one in samples.between(now, now + 99 * SECOND)] == [7, 8, 9]


def test_no_more_rows_are_kept_than_allowed(engine: Engine, now: datetime) -> None:
    samples = Samples(engine, most_rows=5)
    for one in every(now, 1, 12):
        samples.add([one])
        assert samples.count() <= 5
    samples.add(every(now + 20 * SECOND, 1, 8))
    assert [one.figures["running"] for one in samples.between(now, now + 99 * SECOND)] == [3, 4, 5, 6, 7]
    samples.prune(now + 99 * SECOND)
    samples.add(every(now, 1, 3))
    assert samples.count() == 3
