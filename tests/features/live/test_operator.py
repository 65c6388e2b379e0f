"""Who is the operator: at this machine, under its own name, through no proxy; or with the token."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError
from starlette.requests import Request

from app.features.live.operator import is_operator, require_operator
from app.settings import Settings
from app.web.problem import ProblemError

TOKEN = "wörd-of-the-operator-Ω"
LOCAL = ("127.0.0.1", 50000)
FAR = ("192.0.2.7", 50000)
NO_TOKEN = Settings(data_dir=Path("nowhere"))
WITH_TOKEN = Settings(data_dir=Path("nowhere"), operator_token=SecretStr(TOKEN))

Headers = Sequence[tuple[str, str | bytes]]


def request(client: tuple[str, int] | None, headers: Headers = (("host", "localhost:8000"),)) -> Request:
    """A request from there, its headers as bytes on the wire: texts in UTF-8."""
    raw = [
        (name.lower().encode(), value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass"))
        for name, value in headers
    ]
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": b"",
        "headers": raw,
        "client": client,
        "server": ("127.0.0.1", 8000),
        "scheme": "http",
    }
    return Request(scope)


@pytest.mark.parametrize(
    "peer",
    ["127.0.0.1", "127.0.0.2", "127.255.255.254", "::1", "::ffff:127.0.0.1", "0:0:0:0:0:0:0:1"],
)
@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "localhost:8000",
        "roof.localhost",
        "a.b.localhost:80",
        "127.0.0.1",
        "127.0.0.1:8000",
        "127.8.8.8:65535",
        "[::1]",
        "[::1]:8000",
        "[::ffff:127.0.0.1]:8000",
    ],
)
def test_somebody_at_this_machine(peer: str, host: str) -> None:
    assert is_operator(request((peer, 1), [("host", host)]), NO_TOKEN)


@pytest.mark.parametrize(
    "peer",
    [
        "192.0.2.7",
        "10.0.0.1",
        "172.17.0.1",
        "169.254.1.1",
        "0.0.0.0",
        "::",
        "fe80::1",
        "fd00::1",
        "::ffff:192.0.2.7",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "::7f00:1",
        "2001:db8::1",
        "128.0.0.1",
        "126.255.255.255",
        "",
        "localhost",
        "testclient",
        "127.1",
        "0x7f000001",
        "2130706433",
        "127.0.0.1:80",
        "127.0.0.1\n",
        "unix:",
    ],
)
def test_somebody_elsewhere(peer: str) -> None:
    assert not is_operator(request((peer, 1)), NO_TOKEN)
    assert not is_operator(request((peer, 1)), WITH_TOKEN)


def test_nobody_knows_who() -> None:
    assert not is_operator(request(None), NO_TOKEN)


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [""],
        ["evil.example"],
        ["evil.example:8000"],
        ["localhost.evil.example"],
        ["evillocalhost"],
        ["localhost.evil"],
        [".localhost"],
        ["a..localhost"],
        ["127.0.0.1.evil.example"],
        ["127.0.0.1.nip.example"],
        ["127.1"],
        ["0.0.0.0"],
        ["0.0.0.0:8000"],
        ["0177.0.0.1"],
        ["2130706433"],
        ["192.0.2.7"],
        ["[::]"],
        ["[::ffff:192.0.2.7]"],
        ["[::1"],
        ["[::1]evil"],
        ["[::1]:"],
        ["[127.0.0.1]"],
        ["::1"],
        ["localhost:"],
        ["localhost:80:80"],
        ["localhost:80@evil.example"],
        ["localhost:evil"],
        ["localhost:999999"],
        ["localhost:٣"],
        ["evil.example@localhost"],
        ["localhost/evil"],
        ["localhost evil"],
        ["localhost\x00"],
        ["localhost,evil.example"],
        ["ｌocalhost"],
        ["roof"],
        ["localhost", "localhost"],
        ["localhost", "evil.example"],
        ["evil.example", "localhost"],
    ],
    ids=lambda hosts: ascii("+".join(hosts)),
)
def test_a_name_that_is_not_this_machines_own(hosts: list[str]) -> None:
    assert not is_operator(request(LOCAL, [("host", host) for host in hosts]), NO_TOKEN)


@pytest.mark.parametrize(
    "header",
    [
        ("Forwarded", "for=127.0.0.1"),
        ("Forwarded", ""),
        ("X-Forwarded-For", "127.0.0.1"),
        ("x-forwarded-for", "127.0.0.1, 127.0.0.1"),
        ("X-Forwarded-Host", "localhost"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded", "for=127.0.0.1"),
        ("X-Forwarded-Whatever", "1"),
        ("Via", "1.1 proxy"),
        ("X-Real-IP", "127.0.0.1"),
        ("X-Client-IP", "127.0.0.1"),
        ("True-Client-IP", "127.0.0.1"),
        ("CF-Connecting-IP", "127.0.0.1"),
        ("X-Cluster-Client-IP", "127.0.0.1"),
    ],
    ids=lambda header: ":".join(header),
)
def test_somebody_behind_a_proxy(header: tuple[str, str]) -> None:
    asked = request(LOCAL, [("host", "localhost"), header])
    assert not is_operator(asked, NO_TOKEN)
    with_token = request(LOCAL, [("host", "localhost"), header, ("authorization", f"Bearer {TOKEN}")])
    assert is_operator(with_token, WITH_TOKEN)


def test_the_token_counts_from_anywhere_and_under_any_name() -> None:
    for headers in (
        [("host", "roof.example"), ("authorization", f"Bearer {TOKEN}")],
        [("host", "roof.example"), ("authorization", f"bearer {TOKEN}")],
        [("host", "roof.example"), ("authorization", f"BEARER   {TOKEN} ")],
    ):
        assert is_operator(request(FAR, headers), WITH_TOKEN)
        assert is_operator(request(None, headers), WITH_TOKEN)
        assert not is_operator(request(FAR, headers), NO_TOKEN)
    assert is_operator(request(FAR), WITH_TOKEN, TOKEN)
    assert is_operator(request(FAR), WITH_TOKEN, f" {TOKEN}\n")


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        TOKEN,
        f"Basic {TOKEN}",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN.upper()}",
        f"Bearer x {TOKEN}",
        f"Bearer {TOKEN},{TOKEN}",
        f"Bearer {TOKEN}".encode("utf-16"),
        "Bearer \ud800",
        b"Bearer \xff\xfe",
        "Bearer " + "x" * 100_000,
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_what_is_no_token(value: str | bytes) -> None:
    assert not is_operator(request(FAR, [("host", "localhost"), ("authorization", value)]), WITH_TOKEN)


@pytest.mark.parametrize("token", ["", " ", TOKEN[:-1], TOKEN + "x", "\ud800", "\x00", None])
def test_a_form_without_the_token(token: str | None) -> None:
    assert not is_operator(request(FAR), WITH_TOKEN, token)


@pytest.mark.parametrize("secret", ["", " ", "\t\n ", "too short"])
def test_a_token_that_can_be_guessed_is_none(secret: str) -> None:
    with pytest.raises(ValidationError, match="operator_token"):
        Settings(data_dir=Path("nowhere"), operator_token=SecretStr(secret))


@pytest.mark.parametrize("given_token", ["", " ", "None"])
def test_a_token_of_blanks_lets_nobody_in(given_token: str) -> None:
    settings = Settings(data_dir=Path("nowhere"), operator_token=SecretStr(" " * 16))
    headers = [("host", "localhost"), ("authorization", f"Bearer {given_token}")]
    assert not is_operator(request(FAR, headers), settings, given_token)
    assert is_operator(request(LOCAL), settings)


def test_a_wrong_token_takes_nothing_from_who_is_here() -> None:
    assert is_operator(request(LOCAL, [("host", "localhost"), ("authorization", "Bearer wrong")]), WITH_TOKEN, "wrong")


@given(st.text(max_size=30), st.text(max_size=30))
def test_hostile_texts_raise_nothing(host: str, given_token: str) -> None:
    headers: Headers = [("host", host), ("authorization", f"Bearer {given_token}")]
    if given_token.strip() != TOKEN:
        assert not is_operator(request(FAR, headers), WITH_TOKEN, given_token)
    is_operator(request(LOCAL, headers), WITH_TOKEN, given_token)


def test_the_refusal_is_plain_and_names_no_token() -> None:
    require_operator(request(LOCAL), WITH_TOKEN)
    require_operator(request(FAR), WITH_TOKEN, TOKEN)
    with pytest.raises(ProblemError, match="Only the operator") as caught:
        require_operator(request(FAR), WITH_TOKEN, "wrong")
    assert caught.value.status == 403
    assert TOKEN not in caught.value.detail
    assert "wrong" not in caught.value.detail
