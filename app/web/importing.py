"""Imports at the edge: fetching from the hub where that is asked, and refusals as problems with their suggestions."""

from collections.abc import Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool

from app.catalog.importing.keys import ConfigError, Suggestion, UnknownFamilyError
from app.model_import import Imported, ImportRequest, read_import
from app.refusal import Refusal
from app.resolve_model import path_in_model
from app.scenario_parts import MAX_TEXT
from app.web.hub import Hub
from app.web.problem import ProblemError

UNREADABLE = 422


class UnreadableError(ProblemError):
    """A configuration that is not read, at the key; `suggestions` are families as which it could be."""

    def __init__(self, refusal: Refusal, suggestions: Sequence[Suggestion] = ()) -> None:
        self.suggestions = tuple(suggestions)
        super().__init__(UNREADABLE, "The configuration cannot be read; see errors.", [refusal])

    def document(self) -> dict[str, Any]:
        """The problem as a JSON object, with what could be answered to it."""
        offered = [{"read_as": one.read_as, "because": one.because} for one in self.suggestions]
        return super().document() | ({"suggestions": offered} if offered else {})


async def imported_from(asked: ImportRequest, hub: Hub) -> Imported:
    """What the configuration that is sent, or named on the hub, says.

    Raises:
        HubError: it cannot be had.
        UnreadableError: it cannot be read.
    """
    source, name = None, None
    if asked.hub is not None:
        found = await hub.fetch(asked.hub)
        source = {"hub": found.name, "commit": found.commit, "address": found.source}
        name = found.name[:MAX_TEXT]
        asked = asked.model_copy(update={"config": found.config, "quantization": found.quantization})
    try:
        return await run_in_threadpool(read_import, asked, source, name)
    except ConfigError as error:
        suggestions = error.suggestions if isinstance(error, UnknownFamilyError) else ()
        raise UnreadableError(Refusal(path_in_model(error), error.message), suggestions) from error
