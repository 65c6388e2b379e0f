"""An app whose machine gives the answers that a test names."""

from dataclasses import replace

from fastapi import FastAPI

from app.features.live.routes import LiveFeed
from app.features.live.stream import LiveBoards
from app.machine.probes.sampler import Sampler
from app.machine.probes.snapshot import ProbeSnapshot


class StubProbe:
    """Always the same answer."""

    def __init__(self, answer: ProbeSnapshot) -> None:
        self._answer = answer
        self.name, self.label, self.kind = answer.source, answer.label, answer.kind

    def snapshot(self) -> ProbeSnapshot:
        return self._answer

    def close(self) -> None:
        """Nothing to let go of."""


def put(app: FastAPI, *answers: ProbeSnapshot) -> None:
    """The machine of the app gives these answers from now on, and no others."""
    sampler = Sampler([StubProbe(answer) for answer in answers], interval_s=0.2)
    app.state.services = replace(app.state.services, sampler=sampler)
    app.state.live_boards = LiveBoards(sampler, app.state.services.typed, app.state.services.catalog)
    app.state.live_feed = LiveFeed(app.state.live_boards, app.state.services, app.state.templates)
