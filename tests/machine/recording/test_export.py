import csv
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app.machine.recording.figures import LONGEST_WINDOW, csv_pieces
from app.store import samples as module
from app.store.errors import StoreUnavailableError
from app.store.samples import Sample, Samples

HOUR = timedelta(hours=1)


def test_each_figure_has_a_line_with_its_unit(samples: Samples, now: datetime) -> None:
    samples.add(
        [
            Sample(now, "nvidia/0", {"power_draw_w": 412.3, "memory_used_bytes": 10 * 1024**3}),
            Sample(now + timedelta(milliseconds=1_500), "server-1", {"running": 0.0, "retired_figure": -1e-9}),
            Sample(now + HOUR, "host", {"cpu_percent": 1.0}),
        ]
    )
    assert "".join(csv_pieces(samples, now, now + HOUR)).split("\n") == [
        "taken_at,source,figure,value,unit",
        "2026-11-30T12:00:00.000+00:00,nvidia/0,memory_used_bytes,10737418240,B",
        "2026-11-30T12:00:00.000+00:00,nvidia/0,power_draw_w,412.3,W",
        "2026-11-30T12:00:01.500+00:00,server-1,retired_figure,-1e-09,",
        "2026-11-30T12:00:01.500+00:00,server-1,running,0.0,",
        "",
    ]


def test_nothing_recorded_is_a_header(samples: Samples, now: datetime) -> None:
    assert "".join(csv_pieces(samples, now, now + HOUR)) == "taken_at,source,figure,value,unit\n"


def test_text_comes_piece_by_piece_and_whole(samples: Samples, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STREAM_BATCH_ROWS", 10)
    samples.add([Sample(now + n * timedelta(seconds=1), "host", {"cpu_percent": n}) for n in range(35)])
    pieces = list(csv_pieces(samples, now, now + HOUR))
    assert [len(piece.splitlines()) for piece in pieces] == [1, 10, 10, 10, 5]
    assert [float(row["value"]) for row in csv.DictReader("".join(pieces).splitlines())] == list(range(35))


def test_no_more_is_read_than_was_asked_for(now: datetime) -> None:
    class Endless(Samples):
        def __init__(self) -> None:
            self.read = 0

        def stream(self, start: datetime, end: datetime) -> Iterator[tuple[Sample, ...]]:
            while True:
                self.read += 1
                yield (Sample(start, "host", {"cpu_percent": 1.0}),)

    endless = Endless()
    assert len(list(islice(csv_pieces(endless, now, now + HOUR), 6))) == 6
    assert endless.read <= 6


@pytest.mark.parametrize(
    "length", [timedelta(0), -HOUR, LONGEST_WINDOW + timedelta.resolution], ids=["none", "backwards", "too long"]
)
def test_window_is_limited(samples: Samples, now: datetime, length: timedelta) -> None:
    with pytest.raises(ValueError, match="at most 7 days"):
        csv_pieces(samples, now, now + length)
    assert "".join(csv_pieces(samples, now, now + LONGEST_WINDOW))


def test_store_that_fails_says_so_before_anything_is_sent(
    samples: Samples, engine: Engine, path: Path, now: datetime
) -> None:
    engine.dispose()
    path.unlink()
    with pytest.raises(StoreUnavailableError):
        csv_pieces(samples, now, now + HOUR)
