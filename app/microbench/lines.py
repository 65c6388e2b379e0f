"""What a worker writes: lines of JSON, each with a progress, an outcome or a failure. Light: reading is in `heard`."""

import json
from dataclasses import asdict, dataclass

from app.microbench.outcome import Failure, Outcome, Progress

MOST_LINE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Line:
    """Exactly one of the three."""

    progress: Progress | None = None
    outcome: Outcome | None = None
    failure: Failure | None = None

    def __post_init__(self) -> None:
        """Refuses a line that says nothing, or two things."""
        if sum(part is not None for part in (self.progress, self.outcome, self.failure)) != 1:
            raise ValueError("A line says one thing.")

    @property
    def said(self) -> Progress | Outcome | Failure:
        """The one thing."""
        said = self.progress or self.outcome or self.failure
        assert said is not None  # noqa: S101 - `__post_init__` has seen to it
        return said


def line_of(said: Progress | Outcome | Failure) -> bytes:
    """One line, with its end. Raises ValueError where it would hold a number that is none."""
    return json.dumps({type(said).__name__.lower(): asdict(said)}, allow_nan=False).encode() + b"\n"
