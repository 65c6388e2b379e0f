"""What one call site may fetch: the defaults are the narrowest there are, and each site names what it needs more."""

from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from app.outbound.address import parse_address
from app.outbound.reach import PUBLIC, Reach

Ports = tuple[range, ...]
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
HTTPS_ONLY: Final = frozenset({"https"})
HTTP_TOO: Final = frozenset(DEFAULT_PORTS)


def exactly(port: int) -> Ports:
    """That port and no other."""
    return (range(port, port + 1),)


HTTPS_PORT_ONLY: Final = exactly(DEFAULT_PORTS["https"])


class AnyHost(Container[str]):
    """Every host there is: what may be called is then decided by its addresses alone."""

    def __contains__(self, host: object) -> bool:
        """True."""
        return True


class OwnHosts(Container[str]):
    """The names that mean this machine on every machine, so that no name server need be asked: localhost, a number."""

    def __contains__(self, host: object) -> bool:
        """True for localhost and for an IP address, which then has to be within reach."""
        return host == "localhost" or (isinstance(host, str) and parse_address(host) is not None)


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be fetched, and how much of it.

    `hosts` are names in small letters without a port, and IP addresses without brackets; these count only where
    `takes_literals` is set. `reach` says where the addresses of a host may be, whatever it is called. `connect_s` is
    for each address of a host, and again for TLS; `total_s` is for everything, by the wall clock, so that a slow drip
    ends too. A media type of "" in `content_types` is that of an answer that names none. Where `most_redirects` is 0 a
    redirect is refused.
    """

    hosts: Container[str]
    content_types: frozenset[str]
    most_body_bytes: int
    schemes: frozenset[str] = HTTPS_ONLY
    ports: Ports = HTTPS_PORT_ONLY
    reach: Reach = PUBLIC
    takes_literals: bool = False
    accept: str = "application/json, text/plain;q=0.9, */*;q=0.1"
    total_s: float = 5.0
    connect_s: float = 2.0
    most_header_bytes: int = 32_768
    most_redirects: int = 3

    def allows_port(self, port: int) -> bool:
        """Whether `port` is one of `ports`."""
        return any(port in ports for ports in self.ports)
