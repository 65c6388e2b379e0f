"""Addresses under wider policies: any host, IP addresses, plain http, other ports; and what no policy lets through."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.outbound.policy import ANYWHERE, HTTP_TOO, LAN, LOCAL, PUBLIC, AnyHost, BlockedError, OwnHosts, Reach, exactly
from app.outbound.target import Target, parse_target, redirected
from tests.outbound.test_target import NARROW, REFUSED

WIDE = replace(
    NARROW,
    hosts=AnyHost(),
    schemes=HTTP_TOO,
    ports=(range(1, 65_536),),
    reach=ANYWHERE,
    takes_literals=True,
)
AMBIGUOUS = {
    name: url
    for name, url in REFUSED.items()
    # What only a narrow policy refuses: another host, scheme or port, plainly written.
    if name
    not in {
        *("http", "another host", "suffix", "prefix", "subdomain", "parent", "port 80", "port 8443", "IDN", "sslip"),
        *("fragment as path", "query as path", "IPv4", "IPv4, public", "IPv6", "localhost"),
    }
}


def test_what_two_parsers_may_read_differently_is_refused_by_the_widest_policy_too() -> None:
    through = []
    for name, url in AMBIGUOUS.items():
        try:
            through.append((name, parse_target(url, WIDE)))
        except BlockedError:
            continue
    assert through == []


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://localhost", Target("localhost", "/", "http", 80)),
        ("http://localhost:80/", Target("localhost", "/", "http", 80)),
        ("HTTP://GPU_1.lan:8000/Metrics?A=b", Target("gpu_1.lan", "/Metrics?A=b", "http", 8000)),
        ("https://10.0.0.1:8443/metrics", Target("10.0.0.1", "/metrics", "https", 8443)),
        ("http://[::1]:8000", Target("::1", "/", "http", 8000)),
        ("http://[FD12::A]/", Target("fd12::a", "/", "http", 80)),
        ("http://xn--hb-fka.example:65535", Target("xn--hb-fka.example", "/", "http", 65_535)),
    ],
)
def test_what_a_wide_policy_lets_through(url: str, target: Target) -> None:
    assert parse_target(url, WIDE) == target
    assert parse_target(target.url, WIDE) == target


def test_the_host_header_has_brackets_and_a_port_where_they_are_needed() -> None:
    told = {
        "http://gpu.lan/": "gpu.lan",
        "https://gpu.lan:443/": "gpu.lan",
        "https://gpu.lan:80/": "gpu.lan:80",
        "http://[::1]/": "[::1]",
        "http://[::1]:8000/": "[::1]:8000",
    }
    assert {url: parse_target(url, WIDE).authority for url in told} == told


@pytest.mark.parametrize(
    ("url", "reach"),
    [
        ("http://127.0.0.1/", LAN - LOCAL),
        ("http://127.0.0.1/", PUBLIC),
        ("http://10.0.0.1/", LOCAL),
        ("http://8.8.8.8/", LAN),
        ("http://[fd12::1]/", PUBLIC),
    ],
)
def test_an_ip_address_is_allowed_within_reach_only(url: str, reach: Reach) -> None:
    parse_target(url, WIDE)
    for policy in (replace(WIDE, reach=reach), replace(WIDE, takes_literals=False)):
        with pytest.raises(BlockedError):
            parse_target(url, policy)


def test_a_policy_for_this_machine_takes_no_other_name() -> None:
    own = replace(WIDE, hosts=OwnHosts(), reach=LOCAL)
    for url in ("http://localhost:8000/", "http://127.0.0.1/", "http://[::1]/"):
        parse_target(url, own)
    for url in ("http://gpu.lan/", "http://localhost.example/", "http://a.localhost/", "http://10.0.0.1/"):
        with pytest.raises(BlockedError):
            parse_target(url, own)


def test_a_name_is_as_long_as_a_name_may_be() -> None:
    longest = ".".join(["a" * 63] * 3 + ["b" * 61])
    assert parse_target(f"http://{longest}/", WIDE).host == longest
    for name in (f"{longest}b", "a" * 64, f"{'a' * 64}.lan", "-a.lan", "a-.lan", "a..lan"):
        with pytest.raises(BlockedError):
            parse_target(f"http://{name}/", WIDE)


def test_only_the_ports_of_the_policy() -> None:
    policy = replace(WIDE, ports=(*exactly(80), range(8_000, 8_010)))
    for port in (80, 8_000, 8_009):
        assert parse_target(f"http://gpu.lan:{port}", policy).port == port
    for port in (1, 79, 81, 443, 7_999, 8_010, 65_535, 65_536, 99_999):
        with pytest.raises(BlockedError):
            parse_target(f"http://gpu.lan:{port}", policy)


def test_a_redirect_may_lead_up_to_https_but_not_down() -> None:
    plain, safe = Target("gpu.lan", "/", "http", 80), Target("gpu.lan", "/")
    assert redirected(plain, "https://gpu.lan/", WIDE) == safe
    assert redirected(plain, "//gpu.lan/", WIDE) == plain
    assert redirected(safe, "/x", WIDE) == Target("gpu.lan", "/x")
    with pytest.raises(BlockedError):
        redirected(safe, "http://gpu.lan/", WIDE)


@given(st.text(st.characters(codec="ascii"), max_size=40))
def test_whatever_is_let_through_is_read_the_same_again(text: str) -> None:
    try:
        target = parse_target(f"http://{text}", WIDE)
    except BlockedError:
        return
    assert parse_target(target.url, WIDE) == target
