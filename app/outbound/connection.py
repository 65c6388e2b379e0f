"""A connection that goes to a checked address and nowhere else, and counts what comes over it."""

import ssl
from collections.abc import Iterable, Sequence
from typing import Any

from httpcore2 import SOCKET_OPTION, AsyncNetworkBackend, AsyncNetworkStream, ConnectError, ConnectTimeout

from app.outbound.address import IPAddress
from app.outbound.errors import TooLargeError


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
