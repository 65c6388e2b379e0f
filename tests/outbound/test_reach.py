"""This machine, its network, the public internet, and the addresses that belong to none of them."""

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from app.outbound.policy import ANYWHERE, LAN, LOCAL, PUBLIC, Place, is_public, place_of

MACHINE = ["127.0.0.1", "127.0.0.53", "127.255.255.254", "::1", "::ffff:127.0.0.1"]
NETWORK = [
    *("10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255"),
    *("fc00::1", "fd12:3456:789a::1", "fdff:ffff::1", "::ffff:10.0.0.1"),
]
INTERNET = ["1.1.1.1", "172.32.0.1", "192.169.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]
NOWHERE = [
    *("0.0.0.0", "0.0.0.1", "::", "::ffff:0.0.0.0"),
    *("169.254.169.254", "169.254.170.2", "::ffff:169.254.169.254", "fe80::1", "fe80::a9fe:a9fe", "fec0::1"),
    *("100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "::ffff:100.100.100.200"),
    *("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42"),
    *("fd00:a9fe:a9fe::1", "fd00:100::100:200", "fd64:ff9b::a9fe:a9fe"),
    *("224.0.0.1", "233.1.2.3", "239.255.255.250", "ff02::1", "ff0e::1", "255.255.255.255", "240.0.0.1"),
    *("192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"),
    *("198.18.0.1", "198.19.255.255", "2001:2::1", "192.88.99.1"),
    *("2002:7f00:1::1", "2002:c0a8:101::1", "2002:808:808::1"),
    *("64:ff9b::127.0.0.1", "64:ff9b::192.168.1.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::10.0.0.1"),
    *("2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:0:7f00:1::"),
    *("::127.0.0.1", "::10.0.0.1", "::2", "::ffff:0:127.0.0.1"),
    *("fd12::5efe:a00:1", "fd12::200:5efe:7f00:1", "2606:4700::5efe:a9fe:a9fe"),
]


def test_every_address_has_its_place_or_none() -> None:
    expected: dict[str, Place | None] = {
        **dict.fromkeys(MACHINE, Place.MACHINE),
        **dict.fromkeys(NETWORK, Place.NETWORK),
        **dict.fromkeys(INTERNET, Place.INTERNET),
        **dict.fromkeys(NOWHERE),
    }
    assert {text: place_of(ipaddress.ip_address(text)) for text in expected} == expected


def test_each_reach_has_its_places() -> None:
    assert {Place.MACHINE} == LOCAL
    assert {Place.MACHINE, Place.NETWORK} == LAN
    assert {Place.INTERNET} == PUBLIC
    assert ANYWHERE == LAN | PUBLIC
    assert None not in ANYWHERE


@given(st.ip_addresses())
def test_the_internet_is_what_is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert (place_of(address) is Place.INTERNET) is is_public(address)


@given(st.ip_addresses(v=4))
def test_no_disguise_brings_an_address_nearer(inner: ipaddress.IPv4Address) -> None:
    number = int(inner)
    assert place_of(ipaddress.IPv6Address(0xFFFF << 32 | number)) is place_of(inner)
    for disguised in (0x64_FF9B << 96 | number, 0x2002 << 112 | number << 80, 0x2001_0000 << 96 | number):
        assert place_of(ipaddress.IPv6Address(disguised)) not in LAN
    if number > 1:  # :: and ::1 carry nothing.
        assert place_of(ipaddress.IPv6Address(number)) is None
