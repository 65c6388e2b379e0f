"""The one client: every request that the server makes of its own goes through `Outbound.get`.

It says no more than it must and believes nothing: no cookies, no proxy of the environment, no kept connections, no
redirect that was not checked like the first address, no body of the wrong kind or size. Of httpcore it uses a single
connection, the layer below redirects, proxies and cookies, so that there is nothing to switch off.
"""

import asyncio
import logging
import ssl
import zlib
from collections.abc import AsyncIterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import httpcore2

from app.outbound.connection import PinnedBackend, Resolver, checked_addresses, system_resolver
from app.outbound.policy import (
    BadAnswerError,
    BlockedError,
    Policy,
    TooLargeError,
    TooSlowError,
    UnreachableError,
    WrongTypeError,
)
from app.outbound.target import Target, parse_target, redirected

_GZIP = zlib.MAX_WBITS | 16
PLAIN = frozenset({"", "identity"})
PACKED = frozenset({"gzip", "x-gzip"})


async def read_body(pieces: AsyncIterable[bytes], encoding: str, most_bytes: int) -> bytes:
    """The body, unpacked; `encoding` is the Content-Encoding.

    We ask for no packing, but some servers pack all the same: gzip is understood, anything else is not.

    Raises:
        TooLargeError: longer than `most_bytes` as it came, or unpacked. A bomb goes off no further than that.
        BadAnswerError: packed in another way, several times over, or not as the header says.
    """
    if encoding in PLAIN:
        return await _plain(pieces, most_bytes)
    if encoding in PACKED:
        return await _gunzipped(pieces, most_bytes)
    raise BadAnswerError("the answer is packed in a way that was not asked for")


async def _plain(pieces: AsyncIterable[bytes], most_bytes: int) -> bytes:
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > most_bytes:
            raise TooLargeError("the body is longer than is allowed")
    return bytes(body)


async def _gunzipped(pieces: AsyncIterable[bytes], most_bytes: int) -> bytes:
    unpacker = zlib.decompressobj(_GZIP)
    body, came = bytearray(), 0
    async for piece in pieces:
        came += len(piece)
        try:
            # One byte more than may be: enough to see that it is too much, and no more is ever unpacked.
            body += unpacker.decompress(piece, most_bytes + 1 - len(body))
        except zlib.error as error:
            raise BadAnswerError("the body is not the gzip that it says it is") from error
        if max(len(body), came) > most_bytes:
            raise TooLargeError("the body is longer than is allowed")
        if unpacker.unused_data:
            raise BadAnswerError("something follows the packed body")
    if not unpacker.eof:
        raise BadAnswerError("the packed body is cut short")
    return bytes(body)


# At DEBUG it tells whom it calls and what they send. None of that belongs in a log.
logging.getLogger("httpcore2").setLevel(logging.INFO)

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
OK: Final = 200


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer: with status 200 its body, else none. `headers` have small names; of twins they keep the last."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    redirects: tuple[Mapping[str, str], ...] = ()
    """The headers of the redirects on the way here, first to last."""


class Outbound:
    """Fetches files under a policy. `resolve`, `network` and `tls` are the world outside; tests bring their own."""

    def __init__(
        self,
        policy: Policy,
        *,
        resolve: Resolver = system_resolver,
        network: httpcore2.AsyncNetworkBackend | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.policy = policy
        self._resolve, self._network, self._given_tls = resolve, network or httpcore2.AnyIOBackend(), tls

    async def get(self, url: str, *, authorization: str | None = None) -> Fetched:
        """The answer to a GET of `url`, after redirects.

        `authorization` goes to the origin of `url` until a redirect leads to another, and then to none.

        Raises:
            BlockedError: the policy forbids the address, one that it leads to, or to be led elsewhere at all.
            UnreachableError: no name, no connection or no trust.
            TooSlowError, TooLargeError: beyond the policy's limits.
            BadAnswerError: cut short, or too many redirects; of another type, WrongTypeError.
        """
        first = target = parse_target(url, self.policy)
        redirects: list[Mapping[str, str]] = []
        try:
            async with asyncio.timeout(self.policy.total_s):
                while True:
                    fetched = await self._hop(target, authorization)
                    if fetched.status not in REDIRECTS:
                        return Fetched(fetched.status, fetched.headers, fetched.body, tuple(redirects))
                    if not self.policy.most_redirects:
                        raise BlockedError("redirects are not followed")
                    redirects.append(fetched.headers)
                    if len(redirects) > self.policy.most_redirects:
                        raise BadAnswerError("too many redirects")
                    if not (location := fetched.headers.get("location")):
                        raise BadAnswerError("a redirect to nowhere")
                    target = redirected(target, location, self.policy)
                    if target.origin != first.origin:
                        authorization = None  # For good: not even when the other origin sends us back.
        except TimeoutError as error:
            raise TooSlowError("the time is up") from error

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Verifies certificate and host name against the system's authorities."""
        # Made when first needed: reading the authorities takes a while, and most servers never need them.
        return self._given_tls or httpcore2.default_ssl_context()

    async def _hop(self, target: Target, authorization: str | None) -> Fetched:
        """One request on one connection, with the errors of httpcore told as ours."""
        addresses = await checked_addresses(target.host, self._resolve, self.policy.reach)
        backend = PinnedBackend(self._network, addresses, self.policy.most_header_bytes)
        try:
            return await self._ask(target, authorization, backend)
        except httpcore2.ConnectTimeout as error:
            raise UnreachableError("no connection in time") from error
        except httpcore2.TimeoutException as error:
            raise TooSlowError("nothing came for too long") from error
        except httpcore2.ConnectError as error:
            raise UnreachableError("no connection, or a certificate that is not trusted") from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as error:
            raise BadAnswerError("the answer is cut short or is not HTTP") from error
        finally:
            await backend.aclose()

    async def _ask(self, target: Target, authorization: str | None, backend: PinnedBackend) -> Fetched:
        scheme, host = target.scheme.encode(), target.host.encode()
        origin = httpcore2.Origin(scheme, host, target.port)
        request = httpcore2.Request(
            b"GET",
            # From the parts, so that httpcore has nothing to parse and nothing to understand differently.
            httpcore2.URL(scheme=scheme, host=host, port=target.port, target=target.path.encode()),
            headers=_request_headers(target.authority, self.policy.accept, authorization),
            extensions={"timeout": {"connect": self.policy.connect_s}},
        )
        tls = self._tls if target.scheme == "https" else None
        async with httpcore2.AsyncHTTPConnection(
            origin, ssl_context=tls, network_backend=backend, http1=True, http2=False
        ) as connection:
            response = await connection.handle_async_request(request)
            headers = _headers(response)
            if response.status != OK:
                return Fetched(response.status, headers, b"")
            self._check_type(headers)
            self._check_length(headers)
            if backend.stream is not None:
                # As much again for the framing of the chunks as for headers: no honest server needs that much.
                backend.stream.allow(self.policy.most_body_bytes)
            encoding = headers.get("content-encoding", "").strip().lower()
            # Closed here and now: a generator that is given up half-way is closed by the loop's end else, too late.
            async with aclosing(response.aiter_stream()) as pieces:
                return Fetched(OK, headers, await read_body(pieces, encoding, self.policy.most_body_bytes))

    def _check_type(self, headers: Mapping[str, str]) -> None:
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type not in self.policy.content_types:
            raise WrongTypeError("the answer is of another type than is wanted")

    def _check_length(self, headers: Mapping[str, str]) -> None:
        """An answer that announces too much is not even begun. What it does not announce is counted as it comes."""
        # httpcore has seen to it that there is one length at most, and that it is a number.
        if int(headers.get("content-length", "0")) > self.policy.most_body_bytes:
            raise TooLargeError("the announced length is more than is allowed")


def _request_headers(host: str, accept: str, authorization: str | None) -> list[tuple[bytes, bytes]]:
    headers = [
        (b"Host", host.encode("ascii")),
        (b"User-Agent", b"tokenroof"),
        (b"Accept", accept.encode("ascii")),
        (b"Accept-Encoding", b"identity"),
        (b"Connection", b"close"),
    ]
    if authorization is not None:
        headers.append((b"Authorization", authorization.encode("ascii")))
    return headers


def _headers(response: httpcore2.Response) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
