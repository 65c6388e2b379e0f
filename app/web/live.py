"""The live stream, as the pages and the API share it: bounded in number and in time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from app.probes.card import ProbeSnapshot
from app.probes.sampler import TooManyViewersError
from app.web.problem import ProblemError
from app.web.services import Services


def refuse_crowd(services: Services) -> None:
    """Nothing, while there is room for another viewer.

    Raises:
        ProblemError: 503, with the time after which to ask again.
    """
    if services.sampler.viewers >= services.settings.probe_max_streams:
        raise ProblemError(503, "As many viewers as are allowed are watching.", headers={"Retry-After": "10"})


async def snapshots(services: Services) -> AsyncIterator[tuple[ProbeSnapshot, ...]]:
    """Snapshots as they come, until the stream's time is up or the server stops; none where it is too crowded."""
    with suppress(TooManyViewersError):
        async for latest in _subscribed(services):
            yield latest


async def _subscribed(services: Services) -> AsyncIterator[tuple[ProbeSnapshot, ...]]:
    async with services.sampler.subscribe() as subscription:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + services.settings.probe_stream_max_s
        async for latest in subscription:
            yield latest
            if loop.time() >= ends_at:
                return
