"""How a server probe asks for text: a blocking call that somebody else makes safe, and what it may answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from app.probes.reading import Absence

Path = Literal["", "/metrics", "/prometheus/metrics", "/slots", "/props"]
"""What may be asked for: the configured address itself, or one of four paths on the same server.

The query of the configured address goes along with every path: llama.cpp's router wants its `?model=` there too.
"""

CONFIGURED: Final[Path] = ""


@dataclass(frozen=True, slots=True)
class FetchedText:
    """An answer as it came: any status, its `content_type` or an empty text, and a body that is already bounded."""

    status: int
    content_type: str
    body: bytes


class FetchFailed(Exception):  # noqa: N818 - it says what happened to a fetch, as the probe reads it
    """No answer; `absence` says why (blocked, unreachable, a timeout, too large, not metrics)."""

    def __init__(self, absence: Absence) -> None:
        self.absence = absence
        super().__init__(absence.message)


Fetch = Callable[[Path], FetchedText]
"""Fetches one path within a total time of its own, or raises `FetchFailed`. Called from several threads in turn."""
