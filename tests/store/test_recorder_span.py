from datetime import datetime, timedelta

import pytest
from sqlalchemy import Engine

from app.store.database import create_store_engine, facts_of
from app.store.samples import RecorderSpan, Span

HOUR = timedelta(hours=1)


@pytest.fixture
def span(engine: Engine) -> RecorderSpan:
    return RecorderSpan(engine)


def test_nobody_has_asked_in_a_new_file(span: RecorderSpan, now: datetime) -> None:
    assert span.current(now) is None
    span.stop()
    assert span.current(now) is None


def test_span_lasts_until_its_end_and_not_to_it(span: RecorderSpan, now: datetime) -> None:
    assert span.start(now + HOUR, now) == Span(now, now + HOUR)
    assert span.current(now + HOUR - timedelta.resolution) == Span(now, now + HOUR)
    assert span.current(now + HOUR) is None


def test_second_start_moves_the_end_and_keeps_the_beginning(span: RecorderSpan, now: datetime) -> None:
    span.start(now + HOUR, now)
    assert span.start(now + 3 * HOUR, now + HOUR / 2) == Span(now, now + 3 * HOUR)
    assert span.start(now + 9 * HOUR, now + 5 * HOUR) == Span(now + 5 * HOUR, now + 9 * HOUR)  # the first was over


def test_stop_ends_it_for_every_process(span: RecorderSpan, engine: Engine, now: datetime) -> None:
    other_engine = create_store_engine(facts_of(engine).path)
    other = RecorderSpan(other_engine)
    span.start(now + HOUR, now)
    assert other.current(now) == Span(now, now + HOUR)
    other.stop()
    assert span.current(now) is None
    other_engine.dispose()
