"""Addresses that may be fetched, and the many ways to write one that may not."""

from dataclasses import replace

import pytest

from app.outbound.policy import BlockedError, Policy
from app.outbound.target import LONGEST_URL, Target, parse_target, redirected

NARROW = Policy(frozenset({"hub.example", "files.hub.example"}), frozenset({"application/json"}), 1_000)
HOME = Target("hub.example", "/owner/name/resolve/main/config.json")
REFUSED = {
    "nothing": "",
    "three slashes": "///hub.example/",
    "no scheme": "hub.example/",
    "scheme-relative": "//hub.example/",
    "http": "http://hub.example/",
    "ftp": "ftp://hub.example/",
    "file": "file:///etc/passwd",
    "gopher": "gopher://hub.example/",
    "data": "data:application/json,{}",
    "javascript": "javascript:alert(1)",
    "unix socket": "https+unix://hub.example/",
    "no host": "https:///owner/name",
    "no slashes": "https:hub.example/",
    "one slash": "https:/hub.example/",
    "another host": "https://evil.example/",
    "suffix": "https://hub.example.evil.example/",
    "prefix": "https://evilhub.example/",
    "subdomain": "https://evil.hub.example/",
    "parent": "https://example/",
    "trailing dot": "https://hub.example./",
    "leading dot": "https://.hub.example/",
    "two dots": "https://hub..example/",
    "user": "https://evil@hub.example/",
    "user and password": "https://a:b@hub.example/",
    "empty user": "https://@hub.example/",
    "host as user": "https://hub.example@evil.example/",
    "host as user with port": "https://hub.example:443@evil.example/",
    "host as user, escaped": "https://hub.example%40evil.example/",
    "backslash": "https://hub.example\\@evil.example/",
    "backslash for slash": "https:\\\\hub.example/",
    "backslash behind": "https://evil.example\\.hub.example/",
    "port 80": "https://hub.example:80/",
    "port 8443": "https://hub.example:8443/",
    "port 0": "https://hub.example:0/",
    "no port": "https://hub.example:/",
    "port with zeros": "https://hub.example:0443/",
    "port twice": "https://hub.example:443:443/",
    "port as a word": "https://hub.example:https/",
    "port in wide digits": "https://hub.example:４４３/",
    "port too large": "https://hub.example:65979/",
    "fragment as path": "https://evil.example#hub.example/",
    "query as path": "https://evil.example?hub.example/",
    "semicolon": "https://hub.example;evil.example/",
    "comma": "https://hub.example,evil.example/",
    "space in host": "https://hub.example /",
    "space before": " https://hub.example/",
    "space in path": "https://hub.example/a b",
    "tab in host": "https://hub\t.example/",
    "tab in scheme": "ht\ttps://hub.example/",
    "line end": "https://hub.example/\r\nHost: evil.example",
    "line feed behind": "https://hub.example/\n",
    "NUL": "https://hub.example\x00.evil.example/",
    "delete": "https://hub.example/\x7f",
    "percent in host": "https://hub%2eexample/",
    "wide dot": "https://hub。example/",
    "wide letters": "https://ｈｕｂ.example/",
    "look-alike letter": "https://hսb.example/",
    "IDN": "https://xn--hb-fka.example/",
    "soft hyphen": "https://hub\xad.example/",
    "IPv4": "https://127.0.0.1/",
    "IPv4, public": "https://93.184.216.34/",
    "IPv4, metadata": "https://169.254.169.254/latest/meta-data/",
    "IPv4, decimal": "https://2130706433/",
    "IPv4, octal": "https://0177.0.0.1/",
    "IPv4, hex": "https://0x7f000001/",
    "IPv4, hex parts": "https://0x7f.0x0.0x0.0x1/",
    "IPv4, short": "https://127.1/",
    "IPv4, zero": "https://0/",
    "IPv4, wide digits": "https://①②⑦.0.0.1/",
    "IPv6": "https://[::1]/",
    "IPv6, mapped": "https://[::ffff:127.0.0.1]/",
    "IPv6, NAT64": "https://[64:ff9b::a9fe:a9fe]/",
    "IPv6, 6to4": "https://[2002:a9fe:a9fe::1]/",
    "IPv6, zone": "https://[fe80::1%25eth0]/",
    "IPv6, metadata": "https://[fd00:ec2::254]/",
    "IPv6, broken": "https://[::1/",
    "bracketed name": "https://[hub.example]/",
    "localhost": "https://localhost/",
    "sslip": "https://127.0.0.1.nip.example/",
    "too long": "https://hub.example/" + "a" * LONGEST_URL,
}


@pytest.mark.parametrize("url", REFUSED.values(), ids=list(REFUSED))
def test_what_may_not_be_fetched(url: str) -> None:
    with pytest.raises(BlockedError) as refused:
        parse_target(url, NARROW)
    assert str(refused.value) == BlockedError.sentence
    assert "evil" not in refused.value.reason


@pytest.mark.parametrize("location", [url for url in REFUSED.values() if ":" in url or "//" in url])
def test_what_may_not_be_fetched_may_not_be_redirected_to_either(location: str) -> None:
    if location.startswith("//hub.example"):
        return  # From https that is the host's own address.
    with pytest.raises(BlockedError):
        redirected(HOME, location, NARROW)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://hub.example", Target("hub.example", "/")),
        ("https://hub.example/", Target("hub.example", "/")),
        ("HTTPS://Hub.Example/A", Target("hub.example", "/A")),
        ("https://hub.example:443/a?b=c&d=%2F", Target("hub.example", "/a?b=c&d=%2F")),
        ("https://files.hub.example/a#fragment", Target("files.hub.example", "/a")),
        ("https://hub.example?a", Target("hub.example", "/?a")),
        ("https://hub.example//evil.example/", Target("hub.example", "//evil.example/")),
        ("https://hub.example/@evil.example", Target("hub.example", "/@evil.example")),
    ],
)
def test_what_may_be_fetched(url: str, target: Target) -> None:
    assert parse_target(url, NARROW) == target
    assert parse_target(target.url, NARROW) == target


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/api/resolve-cache/x?a=b", "https://hub.example/api/resolve-cache/x?a=b"),
        ("other.json", "https://hub.example/owner/name/resolve/main/other.json"),
        ("?a", "https://hub.example/owner/name/resolve/main/config.json?a"),
        ("../../../../../x", "https://hub.example/x"),
        ("//files.hub.example/x", "https://files.hub.example/x"),
        ("https://files.hub.example/x", "https://files.hub.example/x"),
    ],
)
def test_where_a_redirect_leads(location: str, url: str) -> None:
    assert redirected(HOME, location, NARROW).url == url


def test_no_host_is_allowed_unless_it_is_named() -> None:
    with pytest.raises(BlockedError):
        parse_target("https://hub.example/", replace(NARROW, hosts=frozenset()))
