"""Names to addresses: all of the answer must be within reach, and a name server that is silent holds up nobody."""

import asyncio
import socket
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from app.outbound.connection import checked_addresses, system_resolver
from app.outbound.policy import LAN, LOCAL, PUBLIC, BlockedError, Reach, UnreachableError

pytestmark = pytest.mark.anyio


async def addresses(*answer: str, reach: Reach = PUBLIC) -> list[str]:
    async def resolve(_: str) -> Sequence[str]:
        return answer

    return [str(address) for address in await checked_addresses("hub.example", resolve, reach)]


async def test_one_address_of_each_family_in_the_resolvers_order() -> None:
    assert await addresses("2606:4700::1", "8.8.8.8", "2606:4700::2", "8.8.4.4") == ["2606:4700::1", "8.8.8.8"]
    assert await addresses("8.8.8.8", "2606:4700::1") == ["8.8.8.8", "2606:4700::1"]


@pytest.mark.parametrize("private", ["127.0.0.1", "10.0.0.1", "::1", "::ffff:10.0.0.1", "fe80::1%eth0", "no address"])
async def test_one_that_is_not_public_spoils_the_answer(private: str) -> None:
    for answer in ([private], ["8.8.8.8", private], [private, "8.8.8.8"]):
        with pytest.raises(BlockedError):
            await addresses(*answer)


async def test_every_answer_must_be_within_reach() -> None:
    assert await addresses("127.0.0.1", "::1", reach=LOCAL) == ["127.0.0.1", "::1"]
    assert await addresses("::1", "192.168.0.2", reach=LAN) == ["::1", "192.168.0.2"]
    for answer, reach in (
        (["127.0.0.1", "192.168.0.2"], LOCAL),
        (["192.168.0.2", "8.8.8.8"], LAN),
        (["127.0.0.1", "169.254.169.254"], LAN),
    ):
        with pytest.raises(BlockedError):
            await addresses(*answer, reach=reach)


async def test_an_address_is_its_own_and_nobody_is_asked() -> None:
    async def resolve(_: str) -> Sequence[str]:
        raise AssertionError("asked")

    for text, reach in (("127.0.0.1", LOCAL), ("fd12::1", LAN), ("8.8.8.8", PUBLIC)):
        assert [str(address) for address in await checked_addresses(text, resolve, reach)] == [text]
    for text, reach in (("127.0.0.1", PUBLIC), ("8.8.8.8", LAN), ("10.0.0.1", LOCAL)):
        with pytest.raises(BlockedError):
            await checked_addresses(text, resolve, reach)


@pytest.mark.parametrize("error", [OSError("down"), RuntimeError("can't start new thread")], ids=["system", "thread"])
async def test_whoever_cannot_be_asked_has_not_said_yes(error: Exception) -> None:
    async def resolve(_: str) -> Sequence[str]:
        raise error

    with pytest.raises(UnreachableError):
        await checked_addresses("hub.example", resolve, PUBLIC)


async def test_an_empty_answer_is_none() -> None:
    with pytest.raises(UnreachableError):
        await addresses()


async def test_a_name_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(UnreachableError):
        await checked_addresses("hub.example", system_resolver, PUBLIC)


async def test_a_name_that_cannot_be_asked_for() -> None:
    with pytest.raises(UnreachableError):
        await checked_addresses(f"{'a' * 64}.example", system_resolver, PUBLIC)


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
        await checked_addresses("localhost", system_resolver, PUBLIC)
    found = await checked_addresses("localhost", system_resolver, LOCAL)
    assert found
    assert all(address.is_loopback for address in found)


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


async def test_a_name_that_is_asked_for_again_and_again_takes_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    at_last = threading.Event()
    asked: list[str] = []

    def slow(host: str, *_: Any, **__: Any) -> Any:
        asked.append(host)
        at_last.wait(10)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 443))]

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await system_resolver("hub.example")
    waiting = [asyncio.create_task(system_resolver("hub.example")) for _ in range(2)]
    has_asked = threading.Event()
    elsewhere = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(_asked_elsewhere(has_asked))))
    assert await asyncio.to_thread(has_asked.wait, 10)
    waiting[0].cancel()
    at_last.set()
    assert await waiting[1] == await elsewhere == ["8.8.8.8"]
    assert asked == ["hub.example"]
    assert await system_resolver("hub.example") == ["8.8.8.8"]
    assert len(asked) == 2


async def _asked_elsewhere(has_asked: threading.Event) -> Sequence[str]:
    """The answer in another loop, which says when it has asked."""
    task = asyncio.create_task(system_resolver("hub.example"))
    await asyncio.sleep(0)
    has_asked.set()
    return await task


async def test_whatever_goes_wrong_in_the_thread_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(socket, "getaddrinfo", broken)
    for _ in range(2):
        with pytest.raises(OSError, match="no such name"):
            await system_resolver("hub.example")
