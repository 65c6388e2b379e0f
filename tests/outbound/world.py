"""A small internet for the tests: names, sites that answer by script, and a record of who was called.

It stands in for httpcore's network layer only. TLS is not spoken, but which name it was asked for is recorded; HTTP is
parsed by the real code.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from httpcore2 import SOCKET_OPTION, AsyncNetworkBackend, AsyncNetworkStream, ConnectError, ConnectTimeout

from app.outbound.client import Fetched, Outbound
from app.outbound.policy import Policy

PUBLIC = "93.184.216.34"
OTHER_PUBLIC = "2606:2800:220:1:248:1893:25c8:1946"
HUB = "hub.example"
FILES = "files.example"
POLICY = Policy(
    hosts=frozenset({HUB, FILES}),
    content_types=frozenset({"application/json", "text/plain"}),
    most_body_bytes=10_000,
    total_s=2.0,
    connect_s=0.2,
    most_header_bytes=2_000,
)
TLS = ssl.create_default_context()  # one for all: it takes a while to make
Step = bytes | float
"""Bytes to send, or seconds to wait."""


@dataclass(frozen=True)
class Asked:
    """A request as it came over the line."""

    address: str
    port: int
    tls_name: str | None
    path: str
    headers: Mapping[str, str]


Site = Callable[[Asked], Iterable[Step]]


def page(body: bytes = b"{}", status: str = "200 OK", *, length: bool = True, **headers: str) -> bytes:
    """A whole answer; `headers` have underscores for dashes."""
    lines = {"content-type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
    if length:
        lines.setdefault("content-length", str(len(body)))
    head = "".join(f"{name}: {text}\r\n" for name, text in lines.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def answer(body: bytes = b"{}", status: str = "200 OK", *, length: bool = True, **headers: str) -> list[Step]:
    """The same as the first step of a script, to which others can be added."""
    return [page(body, status, length=length, **headers)]


def redirect(location: str, status: str = "307 Temporary Redirect", **headers: str) -> list[Step]:
    """An answer that leads elsewhere."""
    return answer(b"", status, length=True, location=location, **headers)


class Stream(AsyncNetworkStream):
    """One connection to a site."""

    def __init__(self, world: "World", address: str, port: int) -> None:
        self._world, self._address, self._port = world, address, port
        self._tls_name: str | None = None
        self._request = b""
        self._steps: list[Step] = []
        self.is_closed = False

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> AsyncNetworkStream:
        assert ssl_context.verify_mode is ssl.CERT_REQUIRED
        assert ssl_context.check_hostname
        self._tls_name = server_hostname
        return self

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._request += buffer
        if buffer and self._request.endswith(b"\r\n\r\n"):
            first, *lines = self._request.decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines if line)
            path = first.split(" ")[1]
            asked = Asked(self._address, self._port, self._tls_name, path, headers)
            self._world.asked.append(asked)
            self._steps = list(self._world.site(asked))

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while self._steps:
            step = self._steps.pop(0)
            if isinstance(step, float):
                await asyncio.sleep(step)
                continue
            if len(step) > max_bytes:
                self._steps.insert(0, step[max_bytes:])
            return step[:max_bytes]
        return b""

    async def aclose(self) -> None:
        self.is_closed = True

    def get_extra_info(self, info: str) -> Any:
        return None


@dataclass
class World(AsyncNetworkBackend):
    """Names with their addresses, and one site that answers for all of them.

    `names` gives for each name the answers of the resolver, one after the other; the last one stays.
    """

    site: Site
    names: dict[str, list[Sequence[str]]] = field(default_factory=lambda: {HUB: [[PUBLIC]], FILES: [[PUBLIC]]})
    unreachable: frozenset[str] = frozenset()
    asked: list[Asked] = field(default_factory=list)
    dialled: list[tuple[str, int]] = field(default_factory=list)
    resolved: list[str] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)

    async def resolve(self, host: str) -> Sequence[str]:
        self.resolved.append(host)
        if host not in self.names:
            raise OSError("no such name")
        answers = self.names[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        self.dialled.append((host, port))
        if host == "silent":
            raise ConnectTimeout
        if host in self.unreachable:
            raise ConnectError
        self.streams.append(Stream(self, host, port))
        return self.streams[-1]

    def outbound(self, policy: Policy = POLICY) -> Outbound:
        """A client that lives in this world."""
        return Outbound(policy, resolve=self.resolve, network=self, tls=TLS)

    async def get(self, url: str = f"https://{HUB}/", policy: Policy = POLICY, **others: Any) -> Fetched:
        """One fetch; whatever it ends in, nothing stays open."""
        try:
            return await self.outbound(policy).get(url, **others)
        finally:
            assert all(stream.is_closed for stream in self.streams)


def always(steps: Iterable[Step]) -> World:
    """A world that gives the same answer to everything."""
    fixed = list(steps)
    return World(lambda _: fixed)


def by_path(pages: Mapping[str, Iterable[Step]]) -> World:
    """A world that answers by host and path: "hub.example/a"."""
    return World(lambda asked: pages[f"{asked.tls_name}{asked.path}"])
