"""Headers of every response, and the requests that are turned away at the door."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
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
