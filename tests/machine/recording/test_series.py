from datetime import datetime, timedelta
from itertools import pairwise

from app.machine.recording.figures import Series, recorded_series, series_of
from app.store.samples import Sample, Samples

SECOND = timedelta(seconds=1)


def at(start: datetime, *offsets_s: float, source: str = "server-1", figure: str = "running") -> list[Sample]:
    return [Sample(start + offset_s * SECOND, source, {figure: offset_s}) for offset_s in offsets_s]


def test_line_is_broken_where_more_than_three_intervals_are_missing(now: datetime) -> None:
    (line,) = series_of(at(now, 0, 10, 40, 71, 81), interval_s=10)
    assert [(moment - now) / SECOND for moment in line.times] == [0, 10, 40, 50, 71, 81]
    assert line.values == (0, 10, 40, None, 71, 81)


def test_figure_that_is_absent_from_some_samples_has_a_gap_of_its_own(now: datetime) -> None:
    samples = [
        Sample(now + n * SECOND, "server-1", {"running": 1.0, **({"ttft_p50_s": 0.5} if n in (0, 9) else {})})
        for n in range(10)
    ]
    ttft, running = sorted(series_of(samples, interval_s=1), key=lambda line: len(line.values))
    assert (ttft.figure, ttft.unit, ttft.values) == ("ttft_p50_s", "s", (0.5, None, 0.5))
    assert (running.figure, running.unit, running.values) == ("running", "", (1.0,) * 10)


def test_lines_come_by_source_and_in_the_order_of_the_figures(now: datetime) -> None:
    figures = {"temperature_c": 50.0, "memory_used_bytes": 1.0, "retired_figure": 2.0, "power_draw_w": 3.0}
    found = series_of([Sample(now, "nvidia/1", figures), *at(now, 0), Sample(now, "nvidia/0", figures)], 10)
    names = ["memory_used_bytes", "power_draw_w", "temperature_c", "retired_figure"]
    assert [(line.source, line.figure) for line in found] == [
        *(("nvidia/0", name) for name in names),
        *(("nvidia/1", name) for name in names),
        ("server-1", "running"),
    ]
    assert found[3] == Series("nvidia/0", "retired_figure", "", (now,), (2.0,))


def test_nothing_recorded_gives_no_lines(samples: Samples, now: datetime) -> None:
    assert series_of([], 10) == ()
    assert recorded_series(samples, now, now + 9 * SECOND, every_s=1) == ()


def test_thinned_line_is_whole_though_its_points_lie_further_apart(samples: Samples, now: datetime) -> None:
    samples.add(at(now, *range(0, 1_000, 2), *range(1_500, 2_000, 2)))
    (line,) = recorded_series(samples, now, now + 2_000 * SECOND, every_s=2, most_points=101)
    assert [n for n, value in enumerate(line.values) if value is None] == [line.values.index(998) + 1]
    assert all(before < after for before, after in pairwise(line.times))
    assert (line.values[0], line.values[-1]) == (0, 1_998)
    assert len(line.values) <= 102
    assert recorded_series(samples, now, now + 2_000 * SECOND, 2, source="host") == ()
