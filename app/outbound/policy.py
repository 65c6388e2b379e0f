"""What one call site may fetch: which addresses are public, which rules a policy has, and how a request fails."""

import ipaddress
from collections.abc import Container
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

IPAddress = IPv4Address | IPv6Address

_IPV4_DENIED = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; 100.100.100.200 is a metadata service
        "127.0.0.0/8",
        "168.63.129.16/32",  # the platform service of a cloud, on an otherwise public address
        "169.254.0.0/16",  # link-local; 169.254.169.254 is a metadata service
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments; 192.0.0.192 is a metadata service
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_IPV6_UNICAST = IPv6Network("2000::/3")
# Everything outside 2000::/3 is refused as it is: ::1, fc00::/7 with fd00:ec2::254, fe80::/10, ff00::/8, ::a.b.c.d.
_IPV6_DENIED = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments; Teredo is 2001::/32
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address in disguise
        "3fff::/20",  # documentation
    )
)
# On a network with IPv6 only, DNS64 wraps the address of every IPv4 host like this.
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP_INTERFACES = frozenset({0x0000_5EFE, 0x0200_5EFE})
LOW_32_BITS = 0xFFFF_FFFF


def parse_address(text: str) -> IPAddress | None:
    """The address, or None for what is none, or is one of a certain network card (fe80::1%eth0)."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return None if isinstance(address, IPv6Address) and address.scope_id is not None else address


def is_public(address: IPAddress) -> bool:
    """True for a unicast address of the public internet, False for every special, private or disguised one.

    The mapped and the NAT64 form of an IPv4 address are what that address is. The other forms that carry one (6to4,
    Teredo, IPv4-compatible, ISATAP) are refused whatever they carry: no public service is reached through them.
    """
    if isinstance(address, IPv4Address):
        return address.is_global and not any(address in network for network in _IPV4_DENIED)
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    number = int(address)
    if address in _NAT64:
        return is_public(IPv4Address(number & LOW_32_BITS))
    if address not in _IPV6_UNICAST or any(address in network for network in _IPV6_DENIED):
        return False
    return address.is_global and not is_isatap(address)


def is_isatap(address: IPv6Address) -> bool:
    """True for an address whose last half holds an IPv4 address, to which the packets are sent."""
    return (int(address) >> 32 & LOW_32_BITS) in _ISATAP_INTERFACES


class Place(Enum):
    """Where an address is."""

    MACHINE = "this machine"
    NETWORK = "its network"
    INTERNET = "the public internet"


Reach = frozenset[Place]
"""The places that a fetch may go to."""

LOCAL: Final[Reach] = frozenset({Place.MACHINE})
LAN: Final[Reach] = frozenset({Place.MACHINE, Place.NETWORK})
PUBLIC: Final[Reach] = frozenset({Place.INTERNET})
ANYWHERE: Final[Reach] = frozenset(Place)

_IPV4_LOOPBACK = IPv4Network("127.0.0.0/8")
_IPV6_LOOPBACK = IPv6Address("::1")
_IPV4_PRIVATE = tuple(IPv4Network(network) for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
_IPV6_PRIVATE = IPv6Network("fc00::/7")
# The clouds put services for their own machines, credentials among them, at private addresses of IPv6.
_IPV6_METADATA = tuple(
    IPv6Network(network)
    for network in (
        "fd00:42::42/128",
        "fd00:100::/64",
        "fd00:a9fe:a9fe::/48",
        "fd00:c1::a9fe:a9fe/128",
        "fd00:ec2::/32",
        "fd20:ce::254/128",
    )
)
_IPV4_LINK_LOCAL = IPv4Network("169.254.0.0/16")


def place_of(address: IPAddress) -> Place | None:
    """Where `address` is, or None for one that may never be called.

    The mapped form of an IPv4 address is what that address is. Its NAT64 form is, where the address is public, and
    otherwise none: nobody translates to a private one. The other disguises are none, whatever they carry.
    """
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if is_public(address):
        return Place.INTERNET
    return _place_of_ipv4(address) if isinstance(address, IPv4Address) else _place_of_ipv6(address)


def _place_of_ipv4(address: IPv4Address) -> Place | None:
    if address in _IPV4_LOOPBACK:
        return Place.MACHINE
    return Place.NETWORK if any(address in network for network in _IPV4_PRIVATE) else None


def _place_of_ipv6(address: IPv6Address) -> Place | None:
    if address == _IPV6_LOOPBACK:
        return Place.MACHINE
    if address not in _IPV6_PRIVATE or is_isatap(address) or any(address in network for network in _IPV6_METADATA):
        return None
    # A network may translate to IPv4 at a private prefix of its own, and so lead to a metadata service.
    return None if IPv4Address(int(address) & LOW_32_BITS) in _IPV4_LINK_LOCAL else Place.NETWORK


class OutboundError(Exception):
    """A fetch that came to nothing; one of those below."""

    sentence = "The file could not be fetched."

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(self.sentence)


class BlockedError(OutboundError):
    """The policy forbids it: the address, a host's IP address, or where a redirect leads."""

    sentence = "This server may not fetch from there."


class UnreachableError(OutboundError):
    """No such name, no connection, or a certificate that does not belong to the host."""

    sentence = "The other server cannot be reached."


class TooSlowError(OutboundError):
    """The whole took longer than it may."""

    sentence = "The other server took too long to answer."


class TooLargeError(OutboundError):
    """More bytes than are allowed: headers, what came over the line, or what it unpacks to."""

    sentence = "The other server's answer is too large."


class BadAnswerError(OutboundError):
    """An answer, but a broken one: cut short, packed in an unknown way, sent round in circles."""

    sentence = "The other server's answer is not what it should be."


class WrongTypeError(BadAnswerError):
    """An answer of a media type that was not wanted: a web page in place of a file."""


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
