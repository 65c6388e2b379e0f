"""The live page's moving part as text: made once for each round and question, however many viewers ask."""

import time
from collections.abc import Sequence

from app.live_view.roofs import roofs_of
from app.live_view.view import LiveView, live_view
from app.microbench.result import MeasuredRoofs
from app.probes.sampler import Snapshots
from app.web.live_boards import LiveBoards, Newest
from app.web.services import Services
from app.web.templating import Templates
from app.web.urls import Items

ROOFS_KEPT_S = 10.0
"""Seconds for which the file of measured roofs is not read again."""


class LiveFeed:
    """Views and their text by question. Belongs to one event loop."""

    def __init__(self, boards: LiveBoards, services: Services, templates: Templates) -> None:
        self._boards, self._services, self._templates = boards, services, templates
        self._views = Newest(self._view)
        self._texts = Newest(self._text)
        self._roofs: Sequence[MeasuredRoofs] = ()
        self._roofs_due = float("-inf")

    def view(self, latest: Snapshots, items: Items) -> LiveView:
        """The moving part for `latest`, beside the prediction that `items` ask for."""
        return self._views.of(latest, items)

    def html(self, latest: Snapshots, items: Items) -> str:
        """The same, written out."""
        return self._texts.of(latest, items)

    def roofs(self) -> Sequence[MeasuredRoofs]:
        """What was measured on this machine, as it was some seconds ago at most."""
        if time.monotonic() >= self._roofs_due:
            self._roofs, self._roofs_due = self._services.bench.roofs(), time.monotonic() + ROOFS_KEPT_S
        return self._roofs

    def _view(self, latest: Snapshots, items: Items) -> LiveView:
        board, catalog = self._boards.of(latest, items), self._services.catalog
        return live_view(board, catalog, roofs_of(board, self.roofs(), catalog))

    def _text(self, latest: Snapshots, items: Items) -> str:
        return self._templates.partial_html("live", {"view": self.view(latest, items)})
