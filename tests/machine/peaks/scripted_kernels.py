"""Kernels on a card whose clock is also the wall's: every pass takes the time it is told to, and nothing else does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from app.calc.dtypes import Dtype
from app.calc.quantity import GIB, MIB
from app.machine.peaks.outcome import Stream
from app.machine.peaks.steps import SeenCard, Work


@dataclass
class Script:
    """`pace` says how long a pass of a kind takes; an exception in its place is raised when the work is made."""

    pace: Callable[[str], float | Exception] = lambda _: 1e-3
    seen: SeenCard = field(default_factory=lambda: SeenCard("a card", 80 * GIB, 80 * GIB, 50 * MIB))
    now_s: float = 0.0
    passes: dict[str, int] = field(default_factory=dict)
    batches: list[int] = field(default_factory=list)
    limit_bytes: int | None = None
    released: int = 0
    library: str = "scripted"

    def clock(self) -> float:
        return self.now_s

    def versions(self) -> dict[str, str]:
        return {"scripted": "1"}

    def card(self) -> SeenCard:
        return self.seen

    def limit_memory(self, most_bytes: int) -> None:
        self.limit_bytes = most_bytes

    def work(self, kind: str) -> Work:
        """A pass of a kind."""
        pace = self.pace(kind)
        if isinstance(pace, Exception):
            raise pace

        def once() -> float:
            self.passes[kind] = self.passes.get(kind, 0) + 1
            return pace

        return once

    def streams(self, elements: int) -> Mapping[Stream, Work]:
        return {stream: self.work(stream.value) for stream in Stream}

    def product(self, dtype: Dtype, size: int) -> Work:
        return self.work(f"{dtype.value} {size}")

    def intervals_s(self, work: Work, count: int) -> list[float]:
        self.batches.append(count)
        times_s = []
        for _ in range(count):
            took = work()
            assert isinstance(took, float)
            self.now_s += max(took, 0.0) if took == took else 0.0
            times_s.append(took)
        return times_s

    def release(self) -> None:
        self.released += 1
