"""Whether an IP address belongs to the public internet, so that a server may be sent there by a stranger.

Two tests, since each has been wrong alone: the standard library's `is_global`, which differs between Python versions
(on 3.11 it takes 6to4 and NAT64 forms of private addresses, 192.0.0.192 and multicast for global), and a list of our
own after the special-purpose registries of IANA, with the metadata services of cloud providers.
"""

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

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
