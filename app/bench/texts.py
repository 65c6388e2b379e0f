"""A file of results as text, and the JSON values in it, one after the other, however they were put together."""

import codecs
import re
from collections.abc import Iterator

from app.bench.points import MOST_POINTS, TOO_MANY, BenchError
from app.strict_json import StrictJsonError, loads

MOST_BYTES = 2 * 1024 * 1024
_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
# A text that is not closed is a token too, to the end of the file: sought again from each of its marks, it would take
# the square of its length.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.|\\\Z)*+"?|[{}\[\]]', re.DOTALL)


def as_text(given: bytes) -> str:
    """`given` as text: UTF-8, or UTF-16 where it says so, as a redirection in PowerShell writes.

    Raises:
        BenchError: empty, too large, packed, or no text.
    """
    if len(given) > MOST_BYTES:
        raise BenchError("The file is larger than 2 MiB. Save the results without the single requests.")
    if given.startswith(_PACKED):
        raise BenchError("This is a packed file: unpack it, and bring the results in it.")
    wide = given.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = given.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise BenchError("This is no text in UTF-8.") from error
    if "\0" in text:
        raise BenchError("This is no text: it holds zero bytes.")
    if not text.strip():
        raise BenchError("There is nothing in it.")
    return text


def json_values(text: str) -> Iterator[object]:
    """The values of a text of JSON, JSON lines, or several files one after the other.

    Raises:
        BenchError: it ends in the middle of a value, or one is not JSON as the standard has it.
    """
    for number, piece in enumerate(_pieces(text), start=1):
        if number > MOST_POINTS:
            raise BenchError(TOO_MANY)
        try:
            yield loads(piece, constants_are_text=True)
        except StrictJsonError as error:
            raise BenchError(f"value {number} of the file: {error}") from error


def _pieces(text: str) -> Iterator[str]:
    """The text cut where an outermost object or list ends."""
    depth = start = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
            if depth == 0:
                yield text[start : token.end()].strip()
                start = token.end()
    rest = text[start:].strip()
    if depth > 0:
        raise BenchError("The file ends in the middle of its JSON: it was cut off, or the run was.")
    if rest:
        yield rest
