"""The one client: what it asks, whom it calls, and what it makes of answers that were meant to do harm."""

import pytest

from app.outbound.policy import BadAnswerError, BlockedError, UnreachableError
from tests.outbound.world import FILES, HUB, OTHER_PUBLIC, PUBLIC, always, answer, by_path, redirect

pytestmark = pytest.mark.anyio
HOME = f"https://{HUB}/"


async def test_a_file_comes_with_its_headers() -> None:
    world = always(answer(b'{"a": 1}', x_repo_commit="abc"))
    fetched = await world.get(f"https://{HUB}/a/b?c=d")
    assert (fetched.status, fetched.body, fetched.redirects) == (200, b'{"a": 1}', ())
    assert fetched.headers["x-repo-commit"] == "abc"


async def test_what_is_asked_says_no_more_than_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.lower(), "http://127.0.0.1:9")
    world = always(answer(set_cookie="a=b"))
    for _ in range(2):
        await world.get(f"https://{HUB}:443/a?b#c")
    assert world.dialled == [(PUBLIC, 443)] * 2
    for asked in world.asked:
        assert (asked.path, asked.tls_name) == ("/a?b", HUB)
        assert asked.headers == {
            "host": HUB,
            "user-agent": "tokenroof",
            "accept": "application/json, text/plain;q=0.9, */*;q=0.1",
            "accept-encoding": "identity",
            "connection": "close",
        }


async def test_the_checked_address_is_the_one_that_is_called() -> None:
    """The name is resolved once: an answer that changes between check and connection has nobody to tell."""
    world = always(answer())
    world.names = {HUB: [[PUBLIC], ["127.0.0.1"]]}
    await world.get()
    assert world.resolved == [HUB]
    assert world.dialled == [(PUBLIC, 443)]


async def test_a_name_that_turns_private_between_two_hops_is_not_called_again() -> None:
    world = by_path({f"{HUB}/": redirect("/again")})
    world.names = {HUB: [[PUBLIC], ["169.254.169.254"]]}
    with pytest.raises(BlockedError):
        await world.get()
    assert world.resolved == [HUB, HUB]
    assert world.dialled == [(PUBLIC, 443)]


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["169.254.169.254"],
        ["192.168.0.1"],
        ["100.100.100.200"],
        ["::1"],
        ["::ffff:169.254.169.254"],
        ["64:ff9b::a9fe:a9fe"],
        ["fd00:ec2::254"],
        [PUBLIC, "10.0.0.1"],
        [OTHER_PUBLIC, "::1"],
    ],
)
async def test_a_name_with_a_private_address_is_not_called_at_all(addresses: list[str]) -> None:
    world = always(answer())
    world.names[HUB] = [addresses]
    with pytest.raises(BlockedError):
        await world.get()
    assert world.dialled == []


@pytest.mark.parametrize("url", ["http://hub.example/", "https://evil.example/", "https://169.254.169.254/", "x"])
async def test_an_address_that_is_not_allowed_is_not_even_resolved(url: str) -> None:
    world = always(answer())
    with pytest.raises(BlockedError):
        await world.get(url)
    assert (world.resolved, world.dialled) == ([], [])


async def test_the_other_family_is_tried_when_one_does_not_answer() -> None:
    world = always(answer())
    world.names[HUB] = [[OTHER_PUBLIC, PUBLIC]]
    world.unreachable = frozenset({OTHER_PUBLIC})
    assert (await world.get()).status == 200
    assert world.dialled == [(OTHER_PUBLIC, 443), (PUBLIC, 443)]


async def test_nobody_there() -> None:
    world = always(answer())
    world.unreachable = frozenset({PUBLIC})
    with pytest.raises(UnreachableError):
        await world.get()
    del world.names[HUB]
    with pytest.raises(UnreachableError):
        await world.get()


@pytest.mark.parametrize("status", ["204 No Content", "206 Partial Content", "304 Not Modified", "401 Unauthorized"])
async def test_only_a_200_has_a_body(status: str) -> None:
    fetched = await always(answer(b"", status, length=False, content_type="text/html")).get()
    assert (fetched.status, fetched.body) == (int(status[:3]), b"")


async def test_the_body_of_a_refusal_is_not_read() -> None:
    steps = [*answer(b"", "404 Not Found", content_length="1000000"), 60.0]
    assert (await always(steps).get()).status == 404


# Redirects


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_redirects_are_followed(status: str) -> None:
    world = by_path(
        {
            f"{HUB}/": redirect("/2", status, x_hop="1"),
            f"{HUB}/2": redirect(f"https://{FILES}/3", status, x_hop="2"),
            f"{FILES}/3": redirect("4?a=b", status, x_hop="3"),
            f"{FILES}/4?a=b": answer(b"[]"),
        }
    )
    fetched = await world.get()
    assert fetched.body == b"[]"
    assert [hop["x-hop"] for hop in fetched.redirects] == ["1", "2", "3"]
    assert [asked.tls_name for asked in world.asked] == [HUB, HUB, FILES, FILES]
    assert [asked.headers["host"] for asked in world.asked] == [HUB, HUB, FILES, FILES]
    assert world.resolved == [HUB, HUB, FILES, FILES]


async def test_a_fourth_redirect_is_one_too_many() -> None:
    world = always(redirect("/again"))
    with pytest.raises(BadAnswerError):
        await world.get()
    assert len(world.dialled) == 4


@pytest.mark.parametrize(
    "location",
    [
        "http://hub.example/",
        "http://hub.example:443/",
        "//evil.example/",
        "https://evil.example/",
        "https://hub.example@evil.example/",
        "https://evil@hub.example/",
        "https://hub.example:8443/",
        "https://hub.example./",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://169.254.169.254/latest/meta-data/",
        "https://localhost/",
        "file:///etc/passwd",
        "\\\\evil.example/",
        "https:\\\\evil.example",
        "/a b",
        "https://[",
    ],
)
async def test_a_redirect_to_what_is_not_allowed_is_not_followed(location: str) -> None:
    world = always(redirect(location))
    with pytest.raises(BlockedError):
        await world.get()
    assert world.resolved == [HUB]
    assert len(world.dialled) == 1


async def test_a_redirect_to_an_allowed_name_with_a_private_address_is_not_followed() -> None:
    world = always(redirect(f"https://{FILES}/"))
    world.names[FILES] = [["10.0.0.1"]]
    with pytest.raises(BlockedError):
        await world.get()
    assert len(world.dialled) == 1


async def test_a_redirect_to_nowhere() -> None:
    for steps in (answer(b"", "302 Found"), redirect("")):
        with pytest.raises(BadAnswerError):
            await always(steps).get()


async def test_authorization_stays_with_its_host() -> None:
    world = by_path(
        {
            f"{HUB}/": redirect("/2"),
            f"{HUB}/2": redirect(f"https://{FILES}/"),
            f"{FILES}/": redirect(f"https://{HUB}/3"),
            f"{HUB}/3": answer(),
        }
    )
    await world.get(authorization="Bearer x")
    sent = [asked.headers.get("authorization") for asked in world.asked]
    assert sent == ["bearer x", "bearer x", None, None]
