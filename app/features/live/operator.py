"""Who may do what only the operator may: somebody at this machine, or somebody with the operator's token.

Writes from another site are turned away before (`app.web.middleware`); here it is about who asks.
"""

import hmac
import ipaddress

from starlette.requests import HTTPConnection

from app.settings import Settings
from app.web.problem import ProblemError

# What a proxy adds for the client it speaks for. Behind one on this machine everybody comes from a loopback address.
_FORWARDED = frozenset(
    {
        *("forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "client-ip"),
        *("x-original-forwarded-for", "x-original-host", "cf-connecting-ip", "fastly-client-ip", "x-proxyuser-ip"),
    }
)
_FORWARDED_PREFIX = "x-forwarded"


def is_operator(request: HTTPConnection, settings: Settings, token: str | None = None) -> bool:
    """True at a loopback address under a loopback name and through no proxy, or with the operator's token.

    The token is that of `Authorization: Bearer`, or `token`, where a form brought it. The name counts because a page of
    another site can have its own name point to this machine (DNS rebinding): its requests come from here, too.
    """
    return _bears_token(request, settings, token) or _is_at_this_machine(request)


def require_operator(request: HTTPConnection, settings: Settings, token: str | None = None) -> None:
    """Nothing, for the operator.

    Raises:
        ProblemError: 403, somebody else asks.
    """
    if not is_operator(request, settings, token):
        raise ProblemError(
            403,
            "Only the operator may do this: at this machine under a loopback address, or with the operator's token.",
        )


def _is_at_this_machine(request: HTTPConnection) -> bool:
    if request.client is None or not _is_loopback(request.client.host):
        return False
    names = request.headers.keys()
    if any(name in _FORWARDED or name.startswith(_FORWARDED_PREFIX) for name in names):
        return False
    hosts = request.headers.getlist("host")
    return len(hosts) == 1 and _is_loopback_host(hosts[0])


def _is_loopback_host(host: str) -> bool:
    """Of a Host header: localhost and names below it, 127.0.0.0/8, [::1], each with or without a port."""
    if host.startswith("["):
        address, bracket, port = host[1:].partition("]")
        return bool(bracket) and _is_port(port) and ":" in address and _is_loopback(address)
    name, colon, port = host.partition(":")
    if not _is_port(colon + port):
        return False
    name = name.lower().removesuffix(".")
    labels = name.split(".")
    if labels[-1] == "localhost":
        return all(labels) and name.isascii()
    return _is_loopback(name)


def _is_port(text: str) -> bool:
    return not text or (text[0] == ":" and len(text) <= 6 and (text[1:].isascii() and text[1:].isdigit()))


def _is_loopback(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _bears_token(request: HTTPConnection, settings: Settings, token: str | None) -> bool:
    """Compares bytes, in a time that tells nothing of the token; a token of nothing but spaces is none."""
    expected = settings.operator_token.get_secret_value().strip() if settings.operator_token is not None else ""
    if not expected:
        return False
    secret = expected.encode("utf-8", "surrogateescape")
    given = [] if token is None else [token.strip().encode("utf-8", "replace")]
    for header in request.headers.getlist("authorization"):
        scheme, _, credentials = header.partition(" ")
        if scheme.lower() == "bearer":
            # Starlette reads headers as Latin-1: this gives back the bytes that were sent.
            given.append(credentials.strip(" ").encode("latin-1", "replace"))
    return any(hmac.compare_digest(each, secret) for each in given)
