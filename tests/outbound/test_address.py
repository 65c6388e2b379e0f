"""Public addresses and all the others, in every disguise, the same on every version of Python."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.outbound.policy import is_public, parse_address

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450:4001::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
]
NOT_PUBLIC = {
    "unspecified": "0.0.0.0",
    "this network": "0.1.2.3",
    "loopback": "127.0.0.1",
    "loopback, high": "127.255.255.254",
    "private 10": "10.0.0.1",
    "private 172": "172.16.0.1",
    "private 172, high": "172.31.255.255",
    "private 192": "192.168.1.1",
    "link-local": "169.254.0.1",
    "metadata": "169.254.169.254",
    "metadata of containers": "169.254.170.2",
    "carrier-grade NAT": "100.64.0.1",
    "metadata in carrier-grade NAT": "100.100.100.200",
    "carrier-grade NAT, high": "100.127.255.255",
    "protocol assignments": "192.0.0.1",
    "metadata in protocol assignments": "192.0.0.192",
    "platform service": "168.63.129.16",
    "documentation 1": "192.0.2.1",
    "documentation 2": "198.51.100.1",
    "documentation 3": "203.0.113.1",
    "6to4 relay": "192.88.99.1",
    "benchmarks": "198.18.0.1",
    "benchmarks, high": "198.19.255.255",
    "multicast": "224.0.0.1",
    "multicast, global": "233.1.2.3",
    "reserved": "240.0.0.1",
    "broadcast": "255.255.255.255",
    "v6 unspecified": "::",
    "v6 loopback": "::1",
    "v6 unique local": "fc00::1",
    "v6 metadata": "fd00:ec2::254",
    "v6 link-local": "fe80::1",
    "v6 site-local": "fec0::1",
    "v6 multicast": "ff02::1",
    "v6 multicast, global": "ff0e::1",
    "v6 documentation": "2001:db8::1",
    "v6 documentation, new": "3fff::1",
    "v6 benchmarks": "2001:2::1",
    "v6 ORCHID": "2001:20::1",
    "v6 discard": "100::1",
    "v6 segment routing": "5f00::1",
    "v6 unassigned": "4000::1",
    "mapped loopback": "::ffff:127.0.0.1",
    "mapped metadata": "::ffff:169.254.169.254",
    "mapped metadata in hex": "::ffff:a9fe:a9fe",
    "mapped private": "::ffff:10.0.0.1",
    "mapped carrier-grade NAT": "::ffff:100.64.0.1",
    "compatible loopback": "::127.0.0.1",
    "compatible metadata": "::169.254.169.254",
    "compatible public": "::8.8.8.8",
    "translated metadata": "::ffff:0:169.254.169.254",
    "6to4 metadata": "2002:a9fe:a9fe::1",
    "6to4 private": "2002:c0a8:0101::1",
    "6to4 public": "2002:0808:0808::1",
    "NAT64 metadata": "64:ff9b::169.254.169.254",
    "NAT64 metadata in hex": "64:ff9b::a9fe:a9fe",
    "NAT64 loopback": "64:ff9b::127.0.0.1",
    "NAT64 private": "64:ff9b::192.168.1.1",
    "NAT64, local prefix": "64:ff9b:1::8.8.8.8",
    "Teredo": "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "Teredo of a private client": "2001:0:a9fe:a9fe::5601:5601",
    "ISATAP": "2606:4700::5efe:a9fe:a9fe",
    "ISATAP, universal": "2606:4700::200:5efe:a9fe:a9fe",
}


@pytest.mark.parametrize("text", PUBLIC)
def test_addresses_of_the_public_internet(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", NOT_PUBLIC.values(), ids=list(NOT_PUBLIC))
def test_all_other_addresses(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", ["", "hub.example", "127.1", "0177.0.0.1", "0x7f000001", "2130706433", "fe80::1%eth0"])
def test_what_is_no_address_of_the_internet_is_none(text: str) -> None:
    assert parse_address(text) is None


def test_an_address_is_parsed() -> None:
    assert parse_address("::ffff:8.8.8.8") == ipaddress.ip_address("::ffff:8.8.8.8")


@given(st.ip_addresses(v=4))
def test_a_disguise_never_makes_an_address_public(inner: ipaddress.IPv4Address) -> None:
    number = int(inner)
    mapped = ipaddress.IPv6Address(0xFFFF << 32 | number)
    nat64 = ipaddress.IPv6Address(0x64_FF9B << 96 | number)
    assert is_public(mapped) is is_public(nat64) is is_public(inner)
    assert not is_public(ipaddress.IPv6Address(number))
    assert not is_public(ipaddress.IPv6Address(0x2002 << 112 | number << 80 | 1))


@given(st.ip_addresses())
def test_never_more_than_the_standard_library_grants(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if is_public(address) and not (isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped):
        assert address.is_global
