"""A round frozen under a link: what was read, what was predicted then, and the page as it stood."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.calc.version import FORMULA_VERSION
from app.catalog.catalog import Catalog
from app.live.board import board_of
from app.live.sharing import shareable
from app.live_view.view import LiveView, live_view
from app.probes.snapshot import ProbeSnapshot
from app.scenario import Scenario
from app.store.shared import SharedContents

_VIEW = TypeAdapter(LiveView)


def frozen(
    round_: Sequence[ProbeSnapshot],
    history: Sequence[Sequence[ProbeSnapshot]],
    asked: Scenario | None,
    catalog: Catalog,
    title: str,
    expires_at: datetime | None,
) -> SharedContents:
    """What the store keeps of a round: nothing that names a host, a card in the world or a process.

    Args:
        round_: the readings.
        history: those of the last minute, for the tail of the dot.
        asked: the scenario they are put beside; None for what was probed.
        catalog: the facts.
        title: the link's.
        expires_at: when it ends.
    """
    board = board_of(shareable(round_), [shareable(each) for each in history], asked, catalog)
    return SharedContents(
        title=title,
        document={
            "probes": [snapshot.document() for snapshot in board.snapshots],
            "live": board.document(),
            "view": _VIEW.dump_python(live_view(board, catalog), mode="json"),
        },
        formula_version=FORMULA_VERSION,
        catalog_version=catalog.version,
        expires_at=expires_at,
    )


def thawed(document: Mapping[str, Any]) -> LiveView | None:
    """The page as it stood; None where an older release wrote it in a form that is no longer shown."""
    try:
        return _VIEW.validate_python(document.get("view"))
    except ValidationError:
        return None


def public(document: Mapping[str, Any]) -> dict[str, Any]:
    """What the JSON twin of the link shows: readings and comparison."""
    return {"probes": document.get("probes", []), "live": document.get("live")}
