"""A round frozen under a link: what was read, what was predicted then, and the page as it stood."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.calc.evaluate import FORMULA_VERSION
from app.catalog.catalog import Catalog
from app.features.links.links import SnapshotPayload
from app.features.live.accelerators import roofs_of
from app.features.live.view import LiveView, live_view
from app.machine.live.board import board_of, shareable
from app.machine.peaks.result import MeasuredRoofs
from app.machine.probes.snapshot import ProbeSnapshot
from app.scenario.scenario import Scenario
from app.store.errors import UnstorableError
from app.store.links import Contents
from app.store.tables import DOCUMENT_MAX_CHARS, fitting_json
from app.web.problem import ProblemError

_VIEW = TypeAdapter(LiveView)


TAIL_ROUNDS = 20
"""Rounds that a tail is kept of at most: enough to see the way, and a third of what is drawn while it moves."""


class SnapshotTooLargeError(ProblemError):
    """There is more to be seen than one snapshot holds; says how much of what."""

    def __init__(self, servers: int, cards: int) -> None:
        counts = ((servers, "server"), (cards, "card"))
        count = " and ".join(_count(number, noun) for number, noun in counts if number)
        super().__init__(
            422,
            f"One snapshot does not hold the readings of {count}: they are written out in more than "
            f"{DOCUMENT_MAX_CHARS // 1024} KiB. What is recorded, and its CSV, hold them all.",
        )


def frozen(
    round_: Sequence[ProbeSnapshot],
    history: Sequence[Sequence[ProbeSnapshot]],
    asked: Scenario | None,
    catalog: Catalog,
    roofs: Sequence[MeasuredRoofs],
    title: str,
    expires_at: datetime | None,
) -> Contents:
    """What the store keeps of a round: nothing that names a host, a card in the world or a process.

    Args:
        round_: the readings.
        history: those of the last minute, for the tail of the dot; without one where it would not fit.
        asked: the scenario they are put beside; None for what was probed.
        catalog: the facts.
        roofs: what was measured on this machine, to be drawn dashed.
        title: the link's.
        expires_at: when it ends.

    Raises:
        SnapshotTooLargeError: there is no room for so many servers and cards.
    """
    step = -(-len(history) // TAIL_ROUNDS) or 1
    for rounds in (history[::-1][::step][::-1], ()):
        document = _document(round_, rounds, asked, catalog, roofs)
        with suppress(UnstorableError):
            fitting_json("document", document, DOCUMENT_MAX_CHARS)
            return Contents(
                title=title,
                document=document,
                formula_version=FORMULA_VERSION,
                catalog_version=catalog.version,
                expires_at=expires_at,
            )
    raise SnapshotTooLargeError(sum(each.kind == "server" for each in round_), sum(len(each.cards) for each in round_))


def _document(
    round_: Sequence[ProbeSnapshot],
    history: Sequence[Sequence[ProbeSnapshot]],
    asked: Scenario | None,
    catalog: Catalog,
    roofs: Sequence[MeasuredRoofs],
) -> dict[str, Any]:
    board = board_of(shareable(round_), [shareable(each) for each in history], asked, catalog)
    return {
        "probes": [snapshot.document() for snapshot in board.snapshots],
        "live": board.document(),
        "view": _VIEW.dump_python(live_view(board, catalog, roofs_of(board, roofs, catalog)), mode="json"),
    }


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def thawed(payload: SnapshotPayload) -> LiveView | None:
    """The page as it stood; None where an older release wrote it in a form that is no longer shown."""
    try:
        return _VIEW.validate_python(payload.view)
    except ValidationError:
        return None
