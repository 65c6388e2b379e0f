"""Which addresses may be fetched: what the policy allows, and nothing that two parsers could read differently.

An address is parsed once. What is checked here is what is sent: the connection is made from the parts of the Target,
never from the text again.
"""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import SplitResult, urljoin, urlsplit

from app.outbound.policy import DEFAULT_PORTS, BlockedError, IPAddress, Policy, place_of

LONGEST_URL = 4_096  # a signed address of a content network has a query of a kilobyte or two
LONGEST_NAME = 253

_PRINTABLE = re.compile(r"[\x21-\x7e]+")
# No user name, no percent sign, no trailing dot, no zone, no zeros before a port: whatever is not plain is refused.
_AUTHORITY = re.compile(r"(?:\[(?P<ipv6>[0-9a-f:]+)\]|(?P<name>[a-z0-9._-]+))(?::(?P<port>[1-9][0-9]{0,4}))?")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
# Where the last part of a name is a number, some parsers take the whole for an IPv4 address: 127.1, 0x7f000001, 017.1.
_ENDS_IN_A_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")


@dataclass(frozen=True, slots=True)
class Target:
    """A host, its port and a path with query, all checked. An IPv6 address as `host` has no brackets."""

    host: str
    path: str
    scheme: str = "https"
    port: int = DEFAULT_PORTS["https"]

    @property
    def authority(self) -> str:
        """The host, in brackets if need be, with its port where that is not the usual one: what Host is to say."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """The address as text, up to the path."""
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        return f"{self.origin}{self.path}"


def parse_target(url: str, policy: Policy) -> Target:
    """The target that `url` names.

    Raises:
        BlockedError: a scheme, host or port that the policy does not allow, an IP address out of its reach, a user
            name, or something ambiguous. Its `reason` may be shown to whoever wrote the address.
    """
    _refuse_ambiguous(url)
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise BlockedError("the address cannot be parsed") from error
    if parts.scheme not in policy.schemes:
        raise BlockedError(f"it does not begin with {' or '.join(f'{name}://' for name in sorted(policy.schemes))}")
    host, port, literal = _host_and_port(parts)
    if (literal is not None and not policy.takes_literals) or host not in policy.hosts:
        raise BlockedError("the host is not one that is allowed")
    if not policy.allows_port(port):
        raise BlockedError("the port is not one that is allowed")
    if literal is not None and place_of(literal) not in policy.reach:
        raise BlockedError("the IP address is not one that is allowed")
    path = parts.path or "/"
    return Target(host, f"{path}?{parts.query}" if parts.query else path, parts.scheme, port)


def redirected(target: Target, location: str, policy: Policy) -> Target:
    """Where `location` leads from `target`; it may be relative.

    Raises:
        BlockedError: as for any other address, and for a way from https to http.
    """
    _refuse_ambiguous(location)
    if location.startswith("//"):
        return parse_target(f"{target.scheme}:{location}", policy)
    try:
        has_scheme = bool(urlsplit(location).scheme)
    except ValueError as error:
        raise BlockedError("the address of a redirect cannot be parsed") from error
    # What has a scheme is not joined: joining would mend what is missing ("https:///x"), each parser in its own way.
    there = parse_target(location if has_scheme else urljoin(target.url, location), policy)
    if target.scheme == "https" and there.scheme != "https":
        raise BlockedError("a redirect leads from https to http")
    return there


def _host_and_port(parts: SplitResult) -> tuple[str, int, IPAddress | None]:
    """The host, the port, and the IP address where the host is one, in the one form that everybody reads alike."""
    authority = _AUTHORITY.fullmatch(parts.netloc.lower())
    if authority is None:
        raise BlockedError("the host and its port are not written plainly")
    port = int(authority["port"] or DEFAULT_PORTS[parts.scheme])
    if authority["ipv6"] is not None:
        return authority["ipv6"], port, _ipv6(authority["ipv6"])
    name: str = authority["name"]
    if _ENDS_IN_A_NUMBER.fullmatch(name):
        return name, port, _ipv4(name)
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise BlockedError("the host is not a name")
    return name, port, None


def _ipv4(text: str) -> IPv4Address:
    try:
        return IPv4Address(text)  # Four decimal numbers; a leading zero, octal to some, is refused.
    except AddressValueError as error:
        raise BlockedError("the IP address is not written plainly") from error


def _ipv6(text: str) -> IPv6Address:
    try:
        address = IPv6Address(text)
    except AddressValueError as error:
        raise BlockedError("the IP address is not written plainly") from error
    if address.ipv4_mapped is not None or str(address) != text:
        raise BlockedError("the IP address is not written plainly")
    return address


def _refuse_ambiguous(url: str) -> None:
    """What parsers disagree about: other characters than visible ASCII (tabs, line ends, IDN dots), backslashes."""
    if len(url) > LONGEST_URL:
        raise BlockedError("the address is too long")
    if not _PRINTABLE.fullmatch(url) or "\\" in url:
        raise BlockedError("the address has characters that it may not have")
