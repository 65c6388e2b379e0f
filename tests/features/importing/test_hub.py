"""Imports from the hub: what is asked for, and how each failure is told."""

import asyncio

import pytest

from app.features.importing.hub import Hub, HubConfig, HubError, HubFault
from app.outbound.client import Fetched
from app.outbound.policy import (
    BadAnswerError,
    BlockedError,
    OutboundError,
    TooLargeError,
    TooSlowError,
    UnreachableError,
    WrongTypeError,
)
from app.settings import Settings
from app.web.problem import ProblemError
from tests.web.hub_library import BASE, COMMIT, CONFIG, Library, Page, fault, found, hub_of, refused, with_config

pytestmark = pytest.mark.anyio
QUANTIZATION = {"quantization": {"quant_algo": "FP8"}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# What is asked for


async def test_both_files_of_one_commit() -> None:
    library = Library(
        {
            f"{BASE}/main/config.json": found(CONFIG, x_repo_commit=COMMIT),
            f"{BASE}/{COMMIT}/hf_quant_config.json": found(QUANTIZATION),
        }
    )
    assert await hub_of(library).fetch("owner/name") == HubConfig(
        "owner/name", CONFIG, QUANTIZATION, COMMIT, f"{BASE}/{COMMIT}/config.json"
    )
    assert library.asked == [f"{BASE}/main/config.json", f"{BASE}/{COMMIT}/hf_quant_config.json"]


async def test_most_models_have_no_second_file() -> None:
    imported = await hub_of(with_config(found(CONFIG))).fetch("owner/name")
    assert (imported.quantization, imported.commit, imported.source) == (None, None, f"{BASE}/main/config.json")


async def test_the_commit_may_be_told_in_a_redirect() -> None:
    page = Fetched(200, {}, b"{}", ({"x-repo-commit": "0" * 40}, {"x-repo-commit": COMMIT}, {}))
    assert (await hub_of(with_config(page)).fetch("owner/name")).commit == COMMIT


@pytest.mark.parametrize("told", ["", "main", "../../x", COMMIT[:-1], COMMIT + "0", COMMIT.upper(), COMMIT + "\n"])
async def test_what_is_no_commit_is_not_put_into_an_address(told: str) -> None:
    library = with_config(found(CONFIG, x_repo_commit=told))
    assert (await hub_of(library).fetch("owner/name")).commit is None
    assert library.asked[1] == f"{BASE}/main/hf_quant_config.json"


@pytest.mark.parametrize("revision", ["v1.0", COMMIT, "release_2"])
async def test_a_revision(revision: str) -> None:
    library = Library({f"{BASE}/{revision}/config.json": found(CONFIG)})
    assert (await hub_of(library).fetch("owner/name", revision)).config == CONFIG


async def test_another_hub() -> None:
    library = Library({"https://hub.example/owner/name/resolve/main/config.json": found(CONFIG)})
    imported = await hub_of(library, hub_host="hub.example").fetch("owner/name")
    assert imported.source == "https://hub.example/owner/name/resolve/main/config.json"


@pytest.mark.parametrize(
    "name", ["a/b", "meta-llama/Llama-3.1-8B", "Qwen/Qwen3_0.6B", "01-ai/Yi-6B", "_a/b_", "a" * 60 + "/" + "b" * 60]
)
async def test_names_of_models(name: str) -> None:
    library = Library({f"https://huggingface.co/{name}/resolve/main/config.json": found(CONFIG)})
    assert (await hub_of(library).fetch(name)).name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "name",
        "/name",
        "owner/",
        "owner//name",
        "owner/name/",
        "/owner/name",
        "owner/name/resolve",
        "../name",
        "owner/..",
        "./name",
        "owner/.",
        "owner/.git",
        "owner/name.",
        "owner/a..b",
        "-owner/name",
        "owner/name?x",
        "owner/name#x",
        "owner/na me",
        "owner/name\n",
        "owner\\name",
        "owner/%2e%2e",
        "owner/name%2Fx",
        "owner:name/x",
        "user@owner/name",
        "https://huggingface.co/owner/name",
        "öwner/name",
        "owner/ｎame",
        "owner/name\x00",
        "datasets/name",
        "spaces/name",
        "api/models",
        "a/" + "b" * 97,
        "a" * 90 + "/" + "b" * 90,
    ],
)
async def test_what_is_no_name_is_not_asked_for(name: str) -> None:
    library = Library({})
    failed = await fault(hub_of(library), name)
    assert (failed.fault, failed.status) == (HubFault.BAD_NAME, 422)
    assert library.asked == []
    assert failed.detail == HubError(HubFault.BAD_NAME).detail


@pytest.mark.parametrize("revision", ["", ".", "..", "a/b", "refs/pr/1", "a..b", "a b", "main?x", "-x", "x" * 97, "ü"])
async def test_what_is_no_revision_is_not_asked_for(revision: str) -> None:
    library = Library({})
    assert (await fault(hub_of(library), revision=revision)).fault is HubFault.BAD_NAME
    assert library.asked == []


# How failures are told


async def test_off_unless_allowed_and_the_refusal_says_how() -> None:
    hub = Hub(Settings())
    assert not hub.is_allowed
    failed = await fault(hub)
    assert (failed.fault, failed.status) == (HubFault.NOT_ALLOWED, 403)
    assert "TOKENROOF_HUB_IMPORT=true" in failed.detail
    assert isinstance(failed, ProblemError)


async def test_off_means_off_even_for_one_that_could() -> None:
    library = with_config(found(CONFIG))
    assert (await fault(Hub(Settings(), library))).fault is HubFault.NOT_ALLOWED
    assert library.asked == []


@pytest.mark.parametrize(
    ("page", "told", "status"),
    [
        (refused(404), HubFault.NOT_FOUND, 404),
        (refused(401, x_error_code="RepoNotFound"), HubFault.NOT_FOUND, 404),
        (refused(410), HubFault.NOT_FOUND, 404),
        (refused(401, x_error_code="GatedRepo"), HubFault.GATED, 403),
        (refused(401), HubFault.GATED, 403),
        (refused(403), HubFault.GATED, 403),
        (refused(429), HubFault.UNREACHABLE, 502),
        (refused(500), HubFault.UNREACHABLE, 502),
        (refused(204), HubFault.UNREACHABLE, 502),
        (refused(304), HubFault.UNREACHABLE, 502),
        (TooLargeError("x"), HubFault.TOO_LARGE, 502),
        (TooSlowError("x"), HubFault.TOO_SLOW, 504),
        (UnreachableError("x"), HubFault.UNREACHABLE, 502),
        (BlockedError("x"), HubFault.UNREACHABLE, 502),
        (BadAnswerError("x"), HubFault.UNREACHABLE, 502),
        (WrongTypeError("x"), HubFault.NOT_JSON, 502),
        (found(b""), HubFault.NOT_JSON, 502),
        (found(b"<html>"), HubFault.NOT_JSON, 502),
        (found(b'{"secret": 1e999}'), HubFault.NOT_JSON, 502),
        (found(b'{"secret": nan}'), HubFault.NOT_JSON, 502),
        (found(b'{"secret": 1, "secret": 2}'), HubFault.NOT_JSON, 502),
        (found(b'{"secret": "\\ud800"}'), HubFault.NOT_JSON, 502),
        (found(b'{"secret": "\xff"}'), HubFault.NOT_JSON, 502),
        (found(b"[" * 10_000 + b"]" * 10_000), HubFault.NOT_JSON, 502),
        (found(b'{"secret":' * 10_000 + b"1" + b"}" * 10_000), HubFault.NOT_JSON, 502),
        (found(b'{"secret": ' + b"9" * 5_000 + b"}"), HubFault.NOT_JSON, 502),
        (found(b'{"secret": 1'), HubFault.NOT_JSON, 502),
        (found(b"[]"), HubFault.NOT_JSON, 502),
        (found(b"null"), HubFault.NOT_JSON, 502),
        (found(b'"secret"'), HubFault.NOT_JSON, 502),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, Fetched | OutboundError) else "",
)
async def test_what_went_wrong_is_told(page: Page, told: HubFault, status: int) -> None:
    for library in (
        with_config(page),
        with_config(found(CONFIG, x_repo_commit=COMMIT), **{f"{BASE}/{COMMIT}/hf_quant_config.json": page}),
    ):
        if library.pages.get(f"{BASE}/{COMMIT}/hf_quant_config.json") == refused(404):
            continue  # The second file may be missing.
        failed = await fault(hub_of(library))
        assert (failed.fault, failed.status) == (told, status)
        assert "secret" not in failed.detail


async def test_what_is_gated_can_be_pasted() -> None:
    failed = await fault(hub_of(with_config(refused(401))))
    assert "gated" in failed.detail
    assert "Paste" in failed.detail


async def test_which_file_cannot_be_read_and_why() -> None:
    failed = await fault(hub_of(with_config(found(b'{"a": [0, 1e999]}'))))
    assert failed.detail == "config.json on the hub cannot be read: a number is too large for a double."
    broken = {f"{BASE}/main/hf_quant_config.json": found(b"[]")}
    failed = await fault(hub_of(with_config(found(CONFIG), **broken)))
    assert failed.detail == "hf_quant_config.json on the hub is not a JSON object."


async def test_both_files_together_have_the_time_of_one_import() -> None:
    library = with_config(found(CONFIG))
    library.gate.clear()
    async with asyncio.timeout(2):
        assert (await fault(hub_of(library, hub_timeout_s=0.1))).fault is HubFault.TOO_SLOW


async def test_the_operator_is_told_what_was_blocked_and_the_visitor_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failed = await fault(hub_of(with_config(BlockedError("the name has an address that is not public"))))
    assert "public" not in failed.detail
    assert "the name has an address that is not public" in caplog.text
    assert "owner" not in caplog.text
