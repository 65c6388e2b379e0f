"""Names to addresses: all of the answer must be public, and a name server that is silent holds up nobody."""

import asyncio
import socket
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from app.outbound.errors import BlockedError, UnreachableError
from app.outbound.resolver import public_addresses, system_resolver

pytestmark = pytest.mark.anyio


async def addresses(*answer: str) -> list[str]:
    async def resolve(_: str) -> Sequence[str]:
        return answer

    return [str(address) for address in await public_addresses("hub.example", resolve)]


async def test_one_address_of_each_family_in_the_resolvers_order() -> None:
    assert await addresses("2606:4700::1", "8.8.8.8", "2606:4700::2", "8.8.4.4") == ["2606:4700::1", "8.8.8.8"]
    assert await addresses("8.8.8.8", "2606:4700::1") == ["8.8.8.8", "2606:4700::1"]


@pytest.mark.parametrize("private", ["127.0.0.1", "10.0.0.1", "::1", "::ffff:10.0.0.1", "fe80::1%eth0", "no address"])
async def test_one_that_is_not_public_spoils_the_answer(private: str) -> None:
    for answer in ([private], ["8.8.8.8", private], [private, "8.8.8.8"]):
        with pytest.raises(BlockedError):
            await addresses(*answer)


async def test_an_empty_answer_is_none() -> None:
    with pytest.raises(UnreachableError):
        await addresses()


async def test_a_name_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(UnreachableError):
        await public_addresses("hub.example", system_resolver)


async def test_a_name_that_cannot_be_asked_for() -> None:
    with pytest.raises(UnreachableError):
        await public_addresses(f"{'a' * 64}.example", system_resolver)


async def test_the_system_is_asked_once_with_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def answer(*arguments: Any, **_: Any) -> Any:
        asked.append(arguments)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 443)),
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2606:4700::1", 443, 0, 0)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    assert await system_resolver("hub.example") == ["8.8.8.8", "2606:4700::1"]
    assert asked == [("hub.example", 443)]


async def test_the_machines_own_name_is_not_public() -> None:
    with pytest.raises(BlockedError):
        await public_addresses("localhost", system_resolver)


async def test_a_silent_name_server_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    at_last = threading.Event()

    def silent(*_: Any, **__: Any) -> Any:
        at_last.wait(10)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await system_resolver("hub.example")
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "outbound-name"]
    assert thread.daemon
    at_last.set()
    thread.join(5)
    await asyncio.sleep(0)  # The late answer arrives, and nobody minds.
