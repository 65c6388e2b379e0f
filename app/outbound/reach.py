"""How far a fetch may go: to this machine, into its network, or out to the public internet.

A list of what is allowed, not of what is not: an address that belongs to none of the three places is refused in every
reach. Link-local addresses and the metadata services of clouds, carrier-grade NAT, multicast, the unspecified address
(0.0.0.0 is no loopback), reserved, documentation and benchmark ranges belong to none.
"""

from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

from app.outbound.address import LOW_32_BITS, IPAddress, is_isatap, is_public


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
