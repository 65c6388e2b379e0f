"""Headers of every response, and the requests that are turned away at the door.

ASGI middleware: HEAD answered as GET, one line of log a request with a calm 500, and a cap on bodies.

Neither addresses nor query strings are logged: a link's address is its secret.
"""

import ipaddress
import json
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.problem import ProblemError

PAGE_POLICY: Mapping[str, str] = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data: blob:",  # Plotly draws an exported picture through a blob
    "connect-src": "'self'",
    "font-src": "'self'",
    "manifest-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
    "report-uri": "/csp-report",
}
DATA_POLICY: Mapping[str, str] = {"default-src": "'none'", "frame-ancestors": "'none'"}
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def policy(directives: Mapping[str, str]) -> str:
    """The header value of a content security policy."""
    return "; ".join(f"{name} {value}" for name, value in directives.items())


_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_PAGE = policy(PAGE_POLICY)
_DATA = policy(DATA_POLICY)


@dataclass(frozen=True, slots=True)
class SecurityHeaders:
    """ASGI middleware: adds the headers that a response does not set itself. Leaves streams alone."""

    app: ASGIApp
    hsts: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; decorate the start of the answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def decorated(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                is_page = headers.get("content-type", "").startswith("text/html")
                headers.setdefault("content-security-policy", _PAGE if is_page else _DATA)
                if self.hsts:
                    headers.setdefault("strict-transport-security", "max-age=31536000; includeSubDomains")
            await send(message)

        await self.app(scope, receive, decorated)


@dataclass(frozen=True, slots=True)
class Doorkeeper:
    """ASGI middleware: turns away foreign host names and cross-site writes.

    A page on another site can make a visitor's browser reach this server in two ways: under a name of its own that it
    points here (DNS rebinding, which needs a registered name, hence a dot), or by a plain cross-site form.
    """

    app: ASGIApp
    allowed_hosts: tuple[str, ...] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it with a problem."""
        if scope["type"] in ("http", "websocket"):
            headers = Headers(scope=scope)
            refusal = None
            if not is_allowed_host(headers.get("host", ""), self.allowed_hosts):
                refusal = ProblemError(421, "This server does not answer to that host name.")
            elif scope["type"] == "http" and scope["method"] not in SAFE_METHODS and is_cross_site(headers):
                refusal = ProblemError(403, "Writes from another site are refused.")
            if refusal is not None:
                await refusal.response()(scope, receive, send)
                return
        await self.app(scope, receive, send)


def is_allowed_host(host: str, allowed: tuple[str, ...]) -> bool:
    """True for IP addresses, single-label names, *.localhost, and the names the operator allows."""
    if "*" in allowed:
        return True
    name = _without_port(host).lower().rstrip(".")
    if not name or any(c.isspace() or c in "/\\@?#" for c in name):
        return False
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return "." not in name or name.endswith(".localhost") or name in {host.lower() for host in allowed}
    return True


def is_cross_site(headers: Headers) -> bool:
    """True when a browser says that the request comes from another site. Clients that say nothing are no browsers."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    if origin is None:
        return False
    return origin.rpartition("://")[2].lower() != headers.get("host", "").lower()


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


@dataclass(frozen=True, slots=True)
class HeadAsGet:
    """ASGI middleware: FastAPI's routes take HEAD for a method of its own, so link checkers would get 405."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass HEAD on as GET and keep the body back; everything else as it is."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self.app({**scope, "method": "GET"}, receive, without_body)


logger = logging.getLogger("tokenroof.request")


@dataclass(frozen=True, slots=True)
class RequestLog:
    """ASGI middleware: logs each request under an id, and turns an unforeseen error into a calm 500 with that id."""

    app: ASGIApp
    failure: Callable[[Scope, str], Response]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; log how it went."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id, started, status = secrets.token_hex(6), time.perf_counter(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception:
            logger.exception("unforeseen error in request %s", request_id)
            if status:
                raise
            await self.failure(scope, request_id)(scope, receive, watched)
        finally:
            logger.info(
                json.dumps(
                    {
                        "id": request_id,
                        "method": scope["method"],
                        "route": getattr(scope.get("route"), "path", None),
                        "status": status,
                        "ms": round(1000 * (time.perf_counter() - started), 1),
                    }
                )
            )


def too_large(limit: int) -> str:
    """What is told of a body beyond a limit in bytes."""
    return f"That is more than the server reads here: {limit:,} bytes."


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """ASGI middleware: refuses larger bodies with 413 in the product's own problem form.

    `refuse` makes the answer of a path and a problem, `by_path` are limits of single paths. FastAPI has a limit too,
    but answers in plain text, outside the security headers.
    """

    app: ASGIApp
    refuse: Callable[[str, ProblemError], Response]
    most_bytes: int
    by_path: Mapping[str, int]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a counted body."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self.by_path.get(scope["path"], self.most_bytes)
        if _stated_length(scope) > limit:
            await self.refuse(scope["path"], ProblemError(413, too_large(limit)))(scope, receive, send)
            return
        received, started = 0, False

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise BodyTooLargeError(limit)
            return message

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, counted, watched)
        except BodyTooLargeError:
            if started:
                raise
            await self.refuse(scope["path"], ProblemError(413, too_large(limit)))(scope, receive, send)


class BodyTooLargeError(HTTPException):
    """More of the body has come than is read. An HTTPException, because FastAPI lets only those out of its parsing."""

    def __init__(self, limit: int) -> None:
        super().__init__(413, too_large(limit))


def _stated_length(scope: Scope) -> int:
    stated = Headers(scope=scope).get("content-length", "")
    return int(stated) if stated.isascii() and stated.isdigit() and len(stated) < 20 else 0
