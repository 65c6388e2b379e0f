"""The one client: limits that hold however the bytes come, and answers that are none."""

import asyncio
import gzip
import time
from dataclasses import replace

import pytest

from app.outbound.policy import BadAnswerError, OutboundError, TooLargeError, TooSlowError, WrongTypeError
from tests.outbound.hostile import (
    announced,
    bomb,
    chunked,
    drip,
    dripped_header,
    endless_header,
    endless_interim_answers,
    long_header,
    silent,
    silent_body,
    slow_circle,
    tiny_chunks,
    until_closed,
)
from tests.outbound.world import POLICY, Site, Step, World, always, answer, redirect

pytestmark = pytest.mark.anyio


# Limits


@pytest.mark.parametrize(
    "site",
    [announced, chunked, until_closed, tiny_chunks, bomb, long_header, endless_header, endless_interim_answers],
)
async def test_too_much(site: Site) -> None:
    world = World(site)
    with pytest.raises(TooLargeError):
        await world.get()


async def test_the_limit_itself_is_allowed() -> None:
    body = b"a" * POLICY.most_body_bytes
    for steps in (
        answer(body),
        answer(body, length=False),
        [*answer(b"", length=False, transfer_encoding="chunked"), b"2710\r\n" + body + b"\r\n0\r\n\r\n"],
        answer(gzip.compress(body), content_encoding="gzip"),
    ):
        assert (await always(steps).get()).body == body


async def test_headers_and_body_in_one_piece_do_not_count_together() -> None:
    assert len((await always(answer(b"a" * 9_000)).get()).body) == 9_000


@pytest.mark.parametrize("site", [drip, silent, silent_body, dripped_header, slow_circle])
async def test_too_slow_is_told_by_the_wall_clock(site: Site) -> None:
    began = time.monotonic()
    world = World(site)
    with pytest.raises(TooSlowError):
        await world.get(policy=replace(POLICY, total_s=0.3))
    assert time.monotonic() - began < 1.5


async def test_a_slow_name_server_is_within_the_time() -> None:
    world = always(answer())

    async def slow(_: str) -> list[str]:
        await asyncio.sleep(60)
        return []

    world.resolve = slow  # type: ignore[method-assign, assignment]
    with pytest.raises(TooSlowError):
        await world.get(policy=replace(POLICY, total_s=0.1))


# Answers that are none


@pytest.mark.parametrize("content_type", ["text/html", "text/html; charset=utf-8", "image/png", "", "json", "*/*"])
async def test_another_type_is_refused_before_the_body(content_type: str) -> None:
    steps = [*answer(b"", content_type=content_type, content_length="1000"), 60.0]
    with pytest.raises(WrongTypeError):
        await always(steps).get()


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=utf-8", "text/plain;x"])
async def test_a_wanted_type_in_any_spelling(content_type: str) -> None:
    assert (await always(answer(content_type=content_type)).get()).status == 200


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [b"\0\0\0"],
        [b"SSH-2.0-OpenSSH_9.2\r\n"],
        [b"HTTP/1.1 200 OK\r\n"],
        [b"HTTP/1.1 999999 OK\r\n\r\n"],
        [b"HTTP/9.9 200 OK\r\n\r\n"],
        answer(b"{}", content_length="3"),
        answer(b"{}", content_length="-1"),
        answer(b"{}", content_length="2, 3"),
        answer(b"{}", content_length="two"),
        [*answer(b"", length=False, transfer_encoding="chunked"), b"2\r\n{}\r\n"],
        [*answer(b"", length=False, transfer_encoding="chunked"), b"zz\r\n{}\r\n0\r\n\r\n"],
        answer(b"{}", content_encoding="br"),
        answer(gzip.compress(b"{}")[:-4], content_encoding="gzip"),
    ],
    ids=lambda steps: str(steps)[:50],
)
async def test_a_broken_answer(steps: list[Step]) -> None:
    with pytest.raises(BadAnswerError):
        await always(steps).get()


async def test_whatever_goes_wrong_is_told_in_words_that_tell_nothing() -> None:
    for steps in ([b"SSH-2.0-secret\r\n"], redirect("https://secret.example/"), answer(content_type="secret")):
        with pytest.raises(OutboundError) as failed:
            await always(steps).get()
        assert "secret" not in f"{failed.value} {failed.value.reason}"
        assert str(failed.value) == type(failed.value).sentence


async def test_a_fetch_that_is_cancelled_leaves_nothing_open() -> None:
    world = World(silent)
    task = asyncio.create_task(world.get())
    while not world.asked:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert all(stream.is_closed for stream in world.streams)
