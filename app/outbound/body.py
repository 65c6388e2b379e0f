"""The body of an answer, read piece by piece and never beyond the limit, packed or unpacked."""

import zlib
from collections.abc import AsyncIterable

from app.outbound.errors import BadAnswerError, TooLargeError

_GZIP = zlib.MAX_WBITS | 16
PLAIN = frozenset({"", "identity"})
PACKED = frozenset({"gzip", "x-gzip"})


async def read_body(pieces: AsyncIterable[bytes], encoding: str, most_bytes: int) -> bytes:
    """The body, unpacked; `encoding` is the Content-Encoding.

    We ask for no packing, but some servers pack all the same: gzip is understood, anything else is not.

    Raises:
        TooLargeError: longer than `most_bytes` as it came, or unpacked. A bomb goes off no further than that.
        BadAnswerError: packed in another way, several times over, or not as the header says.
    """
    if encoding in PLAIN:
        return await _plain(pieces, most_bytes)
    if encoding in PACKED:
        return await _gunzipped(pieces, most_bytes)
    raise BadAnswerError("the answer is packed in a way that was not asked for")


async def _plain(pieces: AsyncIterable[bytes], most_bytes: int) -> bytes:
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > most_bytes:
            raise TooLargeError("the body is longer than is allowed")
    return bytes(body)


async def _gunzipped(pieces: AsyncIterable[bytes], most_bytes: int) -> bytes:
    unpacker = zlib.decompressobj(_GZIP)
    body, came = bytearray(), 0
    async for piece in pieces:
        came += len(piece)
        try:
            # One byte more than may be: enough to see that it is too much, and no more is ever unpacked.
            body += unpacker.decompress(piece, most_bytes + 1 - len(body))
        except zlib.error as error:
            raise BadAnswerError("the body is not the gzip that it says it is") from error
        if max(len(body), came) > most_bytes:
            raise TooLargeError("the body is longer than is allowed")
        if unpacker.unused_data:
            raise BadAnswerError("something follows the packed body")
    if not unpacker.eof:
        raise BadAnswerError("the packed body is cut short")
    return bytes(body)
