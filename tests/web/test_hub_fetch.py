"""The hub on the real client: what its settings come to, and the way that the real hub sends its files."""

from collections.abc import Mapping
from typing import Any

import pytest

from app.features.importing.hub import Hub, HubError, HubFault, policy_of
from app.outbound.client import Outbound
from app.settings import Settings
from tests.outbound.world import PUBLIC, Asked, Step, World, answer, redirect

pytestmark = pytest.mark.anyio
HOST = "huggingface.co"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CACHED = f"/api/resolve-cache/models/owner/name/{COMMIT}/config.json?%2Fowner%2Fname=&etag=%22d6ce%22"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def world_of(pages: Mapping[str, list[Step]]) -> World:
    def site(asked: Asked) -> list[Step]:
        return pages.get(asked.path, answer(b"Entry not found", "404 Not Found", x_error_code="EntryNotFound"))

    return World(site, {HOST: [[PUBLIC]], "files.example": [[PUBLIC]]})


def hub_in(world: World, **settings: Any) -> Hub:
    chosen = Settings(hub_import=True, **settings)
    return Hub(chosen, Outbound(policy_of(chosen), resolve=world.resolve, network=world))


async def fault(hub: Hub) -> HubFault:
    with pytest.raises(HubError) as failed:
        await hub.fetch("owner/name")
    return failed.value.fault


async def test_a_small_file_comes_by_a_relative_redirect_as_plain_text() -> None:
    world = world_of(
        {
            "/owner/name/resolve/main/config.json": redirect(CACHED, x_repo_commit=COMMIT),
            CACHED: answer(b'{"hidden_size": 64}', content_type="text/plain; charset=utf-8", x_repo_commit=COMMIT),
        }
    )
    imported = await hub_in(world).fetch("owner/name")
    assert (imported.config, imported.quantization, imported.commit) == ({"hidden_size": 64}, None, COMMIT)
    assert {asked.tls_name for asked in world.asked} == {HOST}
    assert world.asked[-1].path == f"/owner/name/resolve/{COMMIT}/hf_quant_config.json"
    assert all("authorization" not in asked.headers and "cookie" not in asked.headers for asked in world.asked)


async def test_a_model_that_has_been_renamed_is_found_under_its_new_name() -> None:
    world = world_of(
        {
            "/owner/name/resolve/main/config.json": redirect("/new/name/resolve/main/config.json"),
            "/new/name/resolve/main/config.json": redirect(CACHED),
            CACHED: answer(b"{}"),
        }
    )
    assert (await hub_in(world).fetch("owner/name")).config == {}


async def test_a_file_elsewhere_needs_the_operators_leave() -> None:
    world = world_of(
        {
            "/owner/name/resolve/main/config.json": redirect("https://files.example/a?Signature=x", "302 Found"),
            "/a?Signature=x": answer(b"{}", content_type="application/octet-stream"),
        }
    )
    assert await fault(hub_in(world)) is HubFault.UNREACHABLE
    assert world.resolved == [HOST]
    assert (await hub_in(world, hub_redirect_hosts=("files.example",)).fetch("owner/name")).config == {}


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (answer(b"a" * 3_000), HubFault.TOO_LARGE),
        (answer(b"<html>", content_type="text/html"), HubFault.NOT_JSON),
        (answer(b"<html>"), HubFault.NOT_JSON),
        (answer(b"{}", content_length="3"), HubFault.UNREACHABLE),
        ([60.0], HubFault.TOO_SLOW),
        (answer(b"", "401 Unauthorized", x_error_code="GatedRepo"), HubFault.GATED),
        (answer(b"", "503 Service Unavailable"), HubFault.UNREACHABLE),
        (redirect("https://evil.example/"), HubFault.UNREACHABLE),
        (redirect("/owner/name/resolve/main/config.json"), HubFault.UNREACHABLE),
    ],
    ids=["large", "page", "page as JSON", "cut short", "slow", "gated", "down", "elsewhere", "circle"],
)
async def test_what_went_wrong_is_told(page: list[Step], told: HubFault) -> None:
    world = world_of({"/owner/name/resolve/main/config.json": page})
    assert await fault(hub_in(world, hub_max_bytes=2_048, hub_timeout_s=0.2)) is told


async def test_a_hub_with_a_private_address_is_not_called() -> None:
    world = world_of({})
    world.names[HOST] = [["10.0.0.1"]]
    assert await fault(hub_in(world)) is HubFault.UNREACHABLE
    assert world.dialled == []


def test_the_settings_are_the_policy() -> None:
    policy = policy_of(
        Settings(
            hub_host="hub.example",
            hub_redirect_hosts=("files.example",),
            hub_timeout_s=7,
            hub_connect_timeout_s=3,
            hub_max_bytes=4_096,
        )
    )
    assert policy.hosts == {"hub.example", "files.example"}
    assert (policy.total_s, policy.connect_s, policy.most_body_bytes, policy.most_redirects) == (7, 3, 4_096, 3)
