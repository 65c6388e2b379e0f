"""A hub of a few pages, and how the tests ask for them."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from app.features.importing.hub import Hub, HubError
from app.outbound.client import Fetched
from app.outbound.policy import OutboundError
from app.settings import Settings

COMMIT = "0123456789abcdef0123456789abcdef01234567"
BASE = "https://huggingface.co/owner/name/resolve"
CONFIG = {"model_type": "llama", "hidden_size": 4096}

Page = Fetched | OutboundError


def found(value: object, **headers: str) -> Fetched:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Fetched(200, {name.replace("_", "-"): text for name, text in headers.items()}, body)


def refused(status: int, **headers: str) -> Fetched:
    return Fetched(status, {name.replace("_", "-"): text for name, text in headers.items()}, b"")


class Library:
    """A hub of a few pages; `gate`, while it is shut, holds every answer back."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self.pages = dict(pages)
        self.asked: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def get(self, url: str) -> Fetched:
        self.asked.append(url)
        await self.gate.wait()
        page = self.pages.get(url, refused(404))
        if isinstance(page, OutboundError):
            raise page
        return page


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def hub_of(library: Library, clock: Callable[[], float] | None = None, **settings: Any) -> Hub:
    return Hub(Settings(hub_import=True, **settings), library, clock or Clock())


def with_config(page: Page, **others: Page) -> Library:
    return Library({f"{BASE}/main/config.json": page, **others})


async def fault(hub: Hub, name: str = "owner/name", revision: str | None = None) -> HubError:
    with pytest.raises(HubError) as failed:
        await hub.fetch(name, revision)
    return failed.value
