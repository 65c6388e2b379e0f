"""A cap on request bodies, counted while they stream; a stated length is believed only when it is too much."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.problem import ProblemError


def too_large(limit: int) -> str:
    """What is told of a body beyond a limit in bytes."""
    return f"That is more than the server reads here: {limit:,} bytes."


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """ASGI middleware: refuses larger bodies with 413 in the product's own problem form.

    `refuse` makes the answer of a path and a problem, `by_path` are limits of single paths. FastAPI has a limit too,
    but answers in plain text, outside the security headers.
    """

    app: ASGIApp
    refuse: Callable[[str, ProblemError], Response]
    most_bytes: int
    by_path: Mapping[str, int]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a counted body."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self.by_path.get(scope["path"], self.most_bytes)
        if _stated_length(scope) > limit:
            await self.refuse(scope["path"], ProblemError(413, too_large(limit)))(scope, receive, send)
            return
        received, started = 0, False

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise BodyTooLargeError(limit)
            return message

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, counted, watched)
        except BodyTooLargeError:
            if started:
                raise
            await self.refuse(scope["path"], ProblemError(413, too_large(limit)))(scope, receive, send)


class BodyTooLargeError(HTTPException):
    """More of the body has come than is read. An HTTPException, because FastAPI lets only those out of its parsing."""

    def __init__(self, limit: int) -> None:
        super().__init__(413, too_large(limit))


def _stated_length(scope: Scope) -> int:
    stated = Headers(scope=scope).get("content-length", "")
    return int(stated) if stated.isascii() and stated.isdigit() and len(stated) < 20 else 0
