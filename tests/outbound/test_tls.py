"""Real TLS over a real socket: the certificate must be trusted, valid and that of the host."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from httpcore2 import SOCKET_OPTION, AnyIOBackend, AsyncNetworkBackend, AsyncNetworkStream

from app.outbound.client import Outbound
from app.outbound.policy import BadAnswerError, TooSlowError, UnreachableError
from tests.outbound.world import HUB, POLICY, PUBLIC, page

OPENSSL = shutil.which("openssl")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(OPENSSL is None, reason="there is no openssl here to make a certificate with"),
]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and self-signed certificate of the hub in one file."""
    assert OPENSSL is not None
    folder = tmp_path_factory.mktemp("tls")
    key, signed, both = folder / "key.pem", folder / "signed.pem", folder / "both.pem"
    command = [OPENSSL, "req", "-x509", "-nodes", "-days", "2", "-newkey", "rsa:2048", "-subj", f"/CN={HUB}"]
    subprocess.run(
        [*command, "-addext", f"subjectAltName=DNS:{HUB}", "-keyout", key, "-out", signed],
        check=True,
        capture_output=True,
    )
    both.write_bytes(key.read_bytes() + signed.read_bytes())
    return both


class Rerouted(AsyncNetworkBackend):
    """The real network, but every call ends at a port of this machine."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.dialled: list[str] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        self.dialled.append(host)
        return await AnyIOBackend().connect_tcp("127.0.0.1", self._port, timeout, local_address, socket_options)


@asynccontextmanager
async def server(certificate: Path | None, sent: bytes, *, hold: bool = False) -> AsyncIterator[Rerouted]:
    """A server that sends `sent` to whoever has asked for something, over TLS if it has a certificate."""
    open_ones: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.add(writer)
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(sent)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            if not hold:
                writer.close()

    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield Rerouted(listening.sockets[0].getsockname()[1])
    finally:
        listening.close()
        for writer in open_ones:
            writer.close()
        await asyncio.sleep(0.01)


def trusting(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certificate)
    return context


async def resolve(_: str) -> list[str]:
    return [PUBLIC]


async def test_a_certificate_of_the_host_is_trusted(certificate: Path) -> None:
    async with server(certificate, page(b'{"a": 1}')) as network:
        outbound = Outbound(POLICY, resolve=resolve, network=network, tls=trusting(certificate))
        for _ in range(2):
            assert (await outbound.get(f"https://{HUB}/")).body == b'{"a": 1}'
        assert network.dialled == [PUBLIC] * 2


async def test_a_certificate_of_another_host_is_not(certificate: Path) -> None:
    policy = replace(POLICY, hosts=frozenset({"other.example"}))
    async with server(certificate, page(b'{"a": 1}')) as network:
        outbound = Outbound(policy, resolve=resolve, network=network, tls=trusting(certificate))
        with pytest.raises(UnreachableError):
            await outbound.get("https://other.example/")


async def test_a_certificate_that_nobody_vouches_for_is_not(certificate: Path) -> None:
    async with server(certificate, page(b'{"a": 1}')) as network:
        with pytest.raises(UnreachableError):
            await Outbound(POLICY, resolve=resolve, network=network).get(f"https://{HUB}/")


async def test_a_server_without_tls_is_not_spoken_to() -> None:
    async with server(None, page(b'{"a": 1}')) as network:
        with pytest.raises(UnreachableError):
            await Outbound(POLICY, resolve=resolve, network=network).get(f"https://{HUB}/")


async def test_an_answer_cut_short(certificate: Path) -> None:
    async with server(certificate, page(b"{}", content_length="100")) as network:
        outbound = Outbound(POLICY, resolve=resolve, network=network, tls=trusting(certificate))
        with pytest.raises(BadAnswerError):
            await outbound.get(f"https://{HUB}/")


async def test_an_answer_that_does_not_end(certificate: Path) -> None:
    policy = replace(POLICY, total_s=0.5)
    async with server(certificate, page(b"{}", content_length="100"), hold=True) as network:
        outbound = Outbound(policy, resolve=resolve, network=network, tls=trusting(certificate))
        with pytest.raises(TooSlowError):
            await outbound.get(f"https://{HUB}/")


@pytest.mark.parametrize("seconds", [0.0, 0.05])
async def test_a_handshake_that_is_given_up_leaves_nothing_open(seconds: float) -> None:
    """Nobody answers the greeting. An open connection would show as a ResourceWarning, which fails the test."""

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # Until the other side hangs up.
        writer.close()
        hung_up.set()

    hung_up = asyncio.Event()
    listening = await asyncio.start_server(mute, "127.0.0.1", 0)
    network = Rerouted(listening.sockets[0].getsockname()[1])
    outbound = Outbound(replace(POLICY, connect_s=5.0), resolve=resolve, network=network)
    task = asyncio.create_task(outbound.get(f"https://{HUB}/"))
    while not network.dialled:
        await asyncio.sleep(0)
    await asyncio.sleep(seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    if seconds:
        await asyncio.wait_for(hung_up.wait(), 2)
    listening.close()
    await asyncio.sleep(0.01)


async def test_a_handshake_has_the_time_of_a_connection() -> None:
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(mute, "127.0.0.1", 0)
    network = Rerouted(listening.sockets[0].getsockname()[1])
    with pytest.raises(UnreachableError):
        await Outbound(POLICY, resolve=resolve, network=network).get(f"https://{HUB}/")
    listening.close()
    await asyncio.sleep(0.01)


async def test_the_systems_authorities_are_asked_and_the_name_is_checked() -> None:
    context = Outbound(POLICY)._tls
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
