"""Names resolved to checked addresses, and a connection that goes to such an address and nowhere else."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from httpcore2 import SOCKET_OPTION, AsyncNetworkBackend, AsyncNetworkStream, ConnectError, ConnectTimeout

from app.outbound.policy import (
    DEFAULT_PORTS,
    BlockedError,
    IPAddress,
    Reach,
    TooLargeError,
    UnreachableError,
    parse_address,
    place_of,
)

Resolver = Callable[[str], Awaitable[Sequence[str]]]
"""Takes a host name, gives its addresses as text. Raises OSError when there is none."""


async def checked_addresses(host: str, resolve: Resolver, reach: Reach) -> tuple[IPAddress, ...]:
    """The addresses of `host` to try, at most one of each family, in the resolver's order; an IP address is its own.

    Raises:
        BlockedError: one of them is out of `reach`. A name that has a private address beside a public one is an attack,
            or at least not a public service.
        UnreachableError: there is none, or nobody could be asked.
    """
    try:
        answer = [host] if parse_address(host) is not None else await resolve(host)
    except (OSError, RuntimeError) as error:  # RuntimeError: no thread to ask in.
        raise UnreachableError("the name cannot be resolved") from error
    first_of_family: dict[int, IPAddress] = {}
    for text in answer:
        address = parse_address(text)
        if address is None or place_of(address) not in reach:
            raise BlockedError("the name has an address that is not allowed")
        first_of_family.setdefault(address.version, address)
    if not first_of_family:
        raise UnreachableError("the name has no address")
    return tuple(first_of_family.values())


async def system_resolver(host: str) -> Sequence[str]:
    """The addresses that the operating system gives for `host`.

    In a daemon thread of its own, not in the event loop's pool: that pool is joined at the end, and a name server that
    does not answer would keep the server from stopping. Who asks for the same name meanwhile waits for the same answer,
    so that a name that is asked for every second takes up one thread and no more. Nothing is remembered afterwards.
    """
    return await asyncio.wrap_future(_look_up(host))


_under_way: dict[str, Future[Sequence[str]]] = {}
_lock = threading.Lock()  # Probes have event loops of their own.


def _look_up(host: str) -> Future[Sequence[str]]:
    with _lock:
        if (running := _under_way.get(host)) is not None:
            return running
        answer: Future[Sequence[str]] = Future()
        answer.set_running_or_notify_cancel()  # From here on, who gives up does not stop it for the others.
        threading.Thread(target=_ask, args=(host, answer), name="outbound-name", daemon=True).start()
        _under_way[host] = answer
        return answer


def _ask(host: str, answer: Future[Sequence[str]]) -> None:
    addresses: Sequence[str] = ()
    failure: OSError | None = None
    try:
        found = socket.getaddrinfo(host, DEFAULT_PORTS["https"], type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        addresses = [str(entry[4][0]) for entry in found]
    except OSError as error:
        failure = error
    except Exception:  # A name that has no IDNA form, for one; somebody waits for the answer, whatever it is.
        failure = socket.gaierror("no such name")
    with _lock:
        del _under_way[host]
    if failure is None:
        answer.set_result(addresses)
    else:
        answer.set_exception(failure)


class MeteredStream(AsyncNetworkStream):
    """The stream below, until `allowance` bytes have been read; then TooLargeError.

    Counted above TLS, where HTTP is. It is the only bound on interim answers (1xx) and on the framing of chunks, of
    which a server may send any number.
    """

    def __init__(self, stream: AsyncNetworkStream, allowance: int) -> None:
        self._stream, self._allowance = stream, allowance

    def allow(self, more: int) -> None:
        """Let `more` bytes come."""
        self._allowance += more

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """What has come, at most as much as is left of the allowance."""
        if self._allowance <= 0:
            raise TooLargeError("more bytes than are allowed came over the line")
        data = await self._stream.read(min(max_bytes, self._allowance), timeout)
        self._allowance -= len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send; requests are small and ours, and are not counted."""
        await self._stream.write(buffer, timeout)

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> AsyncNetworkStream:
        """The same stream, from here on over TLS; the certificate must be that of `server_hostname`."""
        self._stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        return self

    async def aclose(self) -> None:
        """Close; during a handshake that was given up this is still the plain connection."""
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:
        """What the stream below knows of itself."""
        return self._stream.get_extra_info(info)


class PinnedBackend(AsyncNetworkBackend):
    """Connects to the first of `addresses` that answers, whatever host it is asked for: names are not resolved again.

    The host that httpcore asks for stays in the Host header, in TLS's server name and in the check of the certificate.
    """

    def __init__(self, network: AsyncNetworkBackend, addresses: Sequence[IPAddress], header_bytes: int) -> None:
        self._network, self._addresses, self._header_bytes = network, addresses, header_bytes
        self.stream: MeteredStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        """The connection, with an allowance for the headers of the answer; each address gets the whole timeout."""
        failure: Exception = ConnectError("no address")
        for address in self._addresses:
            try:
                stream = await self._network.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (ConnectError, ConnectTimeout) as error:
                failure = error
            else:
                self.stream = MeteredStream(stream, self._header_bytes)
                return self.stream
        raise failure

    async def aclose(self) -> None:
        """Close what was opened. httpcore does not, when it is cancelled before the connection is ready."""
        if self.stream is not None:
            await self.stream.aclose()
