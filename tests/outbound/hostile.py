"""Sites that send too much or too slowly: more than the limits of the tests allow, in every way there is."""

import gzip
from collections.abc import Iterable, Iterator

from tests.outbound.world import Asked, Step, answer, redirect

BOMB = gzip.compress(b"\0" * 10_000_000)

# Too much


def announced(_: Asked) -> Iterable[Step]:
    return answer(b"", content_length="10000000")


def chunked(_: Asked) -> Iterable[Step]:
    head = answer(b"", length=False, transfer_encoding="chunked")
    return [*head, *[b"400\r\n" + b"a" * 1_024 + b"\r\n"] * 10_000]


def until_closed(_: Asked) -> Iterable[Step]:
    return [*answer(b"", length=False), *[b"a" * 65_536] * 160]


def tiny_chunks(_: Asked) -> Iterable[Step]:
    head = answer(b"", length=False, transfer_encoding="chunked")
    return [*head, *[b"1;" + b"x" * 1_000 + b"\r\na\r\n"] * 1_000]


def bomb(_: Asked) -> Iterable[Step]:
    return answer(BOMB, content_encoding="gzip")


def long_header(_: Asked) -> Iterable[Step]:
    return [b"HTTP/1.1 200 OK\r\nx: " + b"a" * 3_000 + b"\r\n\r\n"]


def endless_header(_: Asked) -> Iterator[Step]:
    return iter([b"HTTP/1.1 200 OK\r\n", *[b"x: y\r\n"] * 10_000])


def endless_interim_answers(_: Asked) -> Iterable[Step]:
    return [b"HTTP/1.1 103 Early Hints\r\n\r\n"] * 10_000


# Too slowly


def drip(_: Asked) -> Iterator[Step]:
    yield from answer(b"", content_length="1000")
    for _number in range(1_000):
        yield 0.02
        yield b"a"


def silent_body(_: Asked) -> Iterable[Step]:
    return [*answer(b"", content_length="10"), 60.0]


def silent(_: Asked) -> Iterable[Step]:
    return [60.0]


def dripped_header(_: Asked) -> Iterable[Step]:
    return [part for byte in b"HTTP/1.1 200 OK\r\n" * 100 for part in (bytes([byte]), 0.02)]


def slow_circle(_: Asked) -> Iterable[Step]:
    return [0.15, *redirect("/again")]
