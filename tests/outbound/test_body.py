"""Bodies piece by piece: limits hold to the byte, and a bomb goes off no further than they allow."""

import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Iterable

import pytest

from app.outbound.client import read_body
from app.outbound.policy import BadAnswerError, TooLargeError

pytestmark = pytest.mark.anyio
LIMIT = 1_000


async def stream(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def read(*pieces: bytes, encoding: str = "") -> bytes:
    return await read_body(stream(pieces), encoding, LIMIT)


def split(data: bytes, length: int) -> list[bytes]:
    return [data[at : at + length] for at in range(0, len(data), length)]


@pytest.mark.parametrize("encoding", ["", "identity"])
async def test_a_plain_body(encoding: str) -> None:
    assert await read(b"ab", b"", b"c", encoding=encoding) == b"abc"
    assert await read(encoding=encoding) == b""


async def test_the_limit_holds_to_the_byte() -> None:
    assert len(await read(b"a" * 999, b"a")) == LIMIT
    with pytest.raises(TooLargeError):
        await read(b"a" * 999, b"a", b"a")


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip"])
@pytest.mark.parametrize("length", [1, 7, 10_000])
async def test_a_packed_body(encoding: str, length: int) -> None:
    packed = gzip.compress(b"a" * LIMIT)
    assert await read(*split(packed, length), encoding=encoding) == b"a" * LIMIT


@pytest.mark.parametrize("length", [1, 7, 10_000])
async def test_the_limit_holds_after_unpacking(length: int) -> None:
    packed = gzip.compress(b"a" * (LIMIT + 1))
    with pytest.raises(TooLargeError):
        await read(*split(packed, length), encoding="gzip")


async def test_the_limit_holds_before_unpacking() -> None:
    empty_blocks = zlib.compressobj(wbits=31)
    packed = b"".join(empty_blocks.flush(zlib.Z_FULL_FLUSH) + b"" for _ in range(3)) + empty_blocks.flush()
    assert await read(packed, encoding="gzip") == b""
    # A stored block without contents is five bytes that unpack to nothing.
    padded = gzip.compress(b"")[:10] + b"\x00\x00\x00\xff\xff" * LIMIT
    with pytest.raises(TooLargeError):
        await read(*split(padded, 100), encoding="gzip")


async def test_a_bomb_does_not_go_off() -> None:
    bomb = zlib.compressobj(9, wbits=31)
    packed = b"".join(bomb.compress(b"\0" * 1_000_000) for _ in range(100)) + bomb.flush()
    assert len(packed) < 100_000
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError):
            await read(packed, encoding="gzip")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"{}",
        gzip.compress(b"{}")[:-1],
        gzip.compress(b"{}")[:12],
        gzip.compress(b"{}")[:-8] + b"\0" * 8,
        gzip.compress(b"{}") + b"more",
        gzip.compress(b"{}") * 2,
        zlib.compress(b"{}"),
    ],
    ids=["empty", "plain", "short of one byte", "cut short", "wrong sum", "more behind", "twice", "deflate"],
)
async def test_what_is_not_the_gzip_that_it_says_it_is(packed: bytes) -> None:
    for length in (1, 10_000):
        with pytest.raises(BadAnswerError):
            await read(*split(packed, length), encoding="gzip")


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip", "gzip,br", "chunked", "none"])
async def test_packed_in_another_way(encoding: str) -> None:
    with pytest.raises(BadAnswerError):
        await read(b"{}", encoding=encoding)
