"""Every way in which somebody may ask for a fetch, times every address that may be meant to do harm.

Asked for as the product does: by the hub import, for a server that the operator configured, and for one that a person
named in each of the operator's modes. What is refused is never dialled; what is allowed is dialled at the checked
address and no other.
"""

import asyncio
from dataclasses import replace
from typing import Final, Literal

import pytest

from app.features.importing.hub import policy_of
from app.features.live.servers import ServerTargetError, server_targets
from app.features.live.typed_servers import typed_policy, typed_target
from app.outbound.client import Fetched, Outbound
from app.outbound.policy import BlockedError, OutboundError, Policy, TooLargeError, TooSlowError
from app.settings import Settings
from app.web.problem import ProblemError
from tests.outbound import hostile
from tests.outbound.matrix import HUB, METADATA, NAMES, ROWS
from tests.outbound.world import OTHER_PUBLIC, PUBLIC, Site, Step, World, always, answer, redirect

pytestmark = pytest.mark.anyio
TYPED: Final[tuple[Literal["off", "local", "lan", "public"], ...]] = ("off", "local", "lan", "public")
MODES: Final = (*TYPED, "operator", "hub")
ONWARD: Final = ("local", "lan", "public", "operator")
HUB_POLICY = policy_of(Settings(hub_import=True, hub_host=HUB))
TYPED_SETTINGS: dict[str, Settings] = {mode: Settings(typed_servers=mode) for mode in TYPED}


def policy_and_address(mode: str, url: str) -> tuple[Policy, str]:
    """What `mode` may fetch, and the address that it makes of `url`. Raises what the mode refuses with."""
    if mode == "hub":
        return HUB_POLICY, url
    if mode == "operator":
        settings = TYPED_SETTINGS["off"].model_copy(update={"servers": (f"gpu={url}",)})
        (server,) = server_targets(settings)
        return server.policy(settings), server.target.url
    target = typed_target(TYPED_SETTINGS[mode], url)
    policy = typed_policy(TYPED_SETTINGS[mode])
    assert policy is not None
    return policy, target.url


async def is_fetched(mode: str, url: str, world: World) -> bool:
    """Whether `mode` fetches `url`. What it does not fetch, it does not dial."""
    try:
        policy, address = policy_and_address(mode, url)
        fetched: Fetched = await world.get(address, policy)
    except (ProblemError, ServerTargetError, OutboundError):
        assert world.dialled == [], f"{mode} dialled for {url}"
        return False
    assert fetched.status == 200
    return True


def world_of_names() -> World:
    world = always(answer(b"up 1\n", content_type="text/plain"))
    world.names = {name: [addresses] for name, addresses in NAMES.items()}
    return world


async def test_each_mode_fetches_what_it_may_and_nothing_else() -> None:
    wrong = []
    for row in ROWS:
        for mode in MODES:
            fetched = await is_fetched(mode, row.url, world_of_names())
            if fetched is not (mode in row.allowed.split()):
                wrong.append(f"{mode} {'fetched' if fetched else 'refused'} {row.url!r}")
    assert wrong == []
    assert len(ROWS) == len({row.url for row in ROWS}) >= 60


async def test_the_connection_goes_to_the_checked_address_and_the_name_stays() -> None:
    cases = {
        ("local", "http://localhost:8000"): ("127.0.0.1", 8000, "localhost:8000", None),
        ("lan", "http://[fd12:3456::20]:8000"): ("fd12:3456::20", 8000, "[fd12:3456::20]:8000", None),
        ("public", "https://pub6.example:8443"): (OTHER_PUBLIC, 8443, "pub6.example:8443", "pub6.example"),
        ("operator", "https://gpu.lan"): ("192.168.1.20", 443, "gpu.lan", "gpu.lan"),
        ("operator", "https://10.0.0.5:8443"): ("10.0.0.5", 8443, "10.0.0.5:8443", "10.0.0.5"),
    }
    for (mode, url), expected in cases.items():
        world = world_of_names()
        policy, address = policy_and_address(mode, url)
        await world.get(address, policy)
        (asked,) = world.asked
        assert (asked.address, asked.port, asked.headers["host"], asked.tls_name) == expected
        assert asked.headers["accept"].startswith("text/plain")
        assert not {"authorization", "cookie"} & set(asked.headers)


async def test_a_name_that_changes_its_answer_is_checked_at_every_connection() -> None:
    nearer = {
        "local": ("localhost", "127.0.0.1", "10.0.0.1"),
        "lan": ("turn.lan", "10.0.0.1", METADATA),
        "public": ("turn.example", PUBLIC, "127.0.0.1"),
        "operator": ("turn.lan", "10.0.0.1", METADATA),
        "hub": (HUB, PUBLIC, "10.0.0.1"),
    }
    for mode, (name, good, bad) in nearer.items():
        world = always(answer())
        world.names = {name: [[good], [bad]]}
        policy, address = policy_and_address(mode, f"https://{name}/metrics")
        outbound = world.outbound(policy)
        assert (await outbound.get(address)).status == 200
        with pytest.raises(BlockedError):
            await outbound.get(address)
        assert world.dialled == [(good, 443)], mode
        assert world.resolved == [name, name]


async def test_no_redirect_of_a_server_is_followed() -> None:
    """Not even to where the mode may go."""
    for mode in ONWARD:
        url = "http://pub.example:8000" if mode == "public" else "http://127.0.0.1:8000"
        for location in (f"{url}/metrics", "/metrics", f"http://{METADATA}/", "https://pub.example/", ""):
            for status in ("301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"):
                steps = redirect(location, status)
                world = by(lambda _, steps=steps: steps)  # type: ignore[misc]
                policy, address = policy_and_address(mode, url)
                with pytest.raises(BlockedError):
                    await world.get(address, policy)
                assert len(world.dialled) == 1


async def test_a_hostile_answer_ends_within_the_limits() -> None:
    too_much: list[Site] = [
        *(hostile.announced, hostile.chunked, hostile.until_closed, hostile.tiny_chunks, hostile.bomb),
        *(hostile.endless_header, hostile.endless_interim_answers),
    ]
    too_slow: list[Site] = [hostile.drip, hostile.silent, hostile.silent_body, hostile.dripped_header]
    loop = asyncio.get_running_loop()
    for mode in ONWARD:
        url = "http://pub.example:8000" if mode == "public" else "http://127.0.0.1:8000"
        policy, address = policy_and_address(mode, url)
        assert policy.total_s < 3
        quick = replace(policy, most_body_bytes=100_000, total_s=0.05)
        for site in too_much:
            with pytest.raises(TooLargeError):
                await by(site).get(address, replace(policy, most_body_bytes=100_000))
        for site in too_slow:
            began = loop.time()
            with pytest.raises(TooSlowError):
                await by(site).get(address, quick)
            assert loop.time() - began < 1


def by(site: Site) -> World:
    """A world in which `site` answers, however it is reached."""
    world = world_of_names()
    world.site = site
    return world


async def test_a_web_page_is_refused_and_a_missing_type_is_not() -> None:
    policy, address = policy_and_address("local", "http://localhost:8000")
    typeless: list[Step] = [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nup 1\n"]
    assert (await by(lambda _: typeless).get(address, policy)).body == b"up 1\n"
    outbound = Outbound(policy, resolve=world_of_names().resolve, network=always(answer(content_type="text/html")))
    with pytest.raises(OutboundError):
        await outbound.get(address)
