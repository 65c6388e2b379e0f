"""One request straight to an app, for what a polite client cannot send: odd paths, no Host, a body in pieces."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Scope

HOST = ("host", "localhost")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask(
    app: ASGIApp,
    method: str,
    path: str,
    *,
    headers: Sequence[tuple[str, str]] = (HOST,),
    pieces: Sequence[bytes] = (b"",),
) -> Answer:
    """The answer to one request; `path` is raw, percent-encoded, with its query."""
    return asyncio.run(_ask(app, method, path, headers, pieces))


async def _ask(
    app: ASGIApp, method: str, path: str, headers: Sequence[tuple[str, str]], pieces: Sequence[bytes]
) -> Answer:
    raw, _, query = path.partition("?")
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote_to_bytes(raw).decode("utf-8", "replace"),
        "raw_path": raw.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
    }
    waiting = list(pieces)
    sent: list[Message] = []

    async def receive() -> Message:
        if not waiting:
            return {"type": "http.disconnect"}
        piece = waiting.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(waiting)}

    async def send(message: Message) -> None:
        sent.append(message)

    try:
        await app(scope, receive, send)
    except Exception:
        if not sent:  # what is raised behind an answer a server can only log
            raise
    start = next(message for message in sent if message["type"] == "http.response.start")
    body = b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body")
    found = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(start["status"], found, body)
