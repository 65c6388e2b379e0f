"""ASGI middleware: HEAD answered as GET, one line of log a request with a calm 500, and a cap on bodies.

Neither addresses nor query strings are logged: a link's address is its secret.
"""

import json
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.problem import ProblemError


@dataclass(frozen=True, slots=True)
class HeadAsGet:
    """ASGI middleware: FastAPI's routes take HEAD for a method of its own, so link checkers would get 405."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass HEAD on as GET and keep the body back; everything else as it is."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self.app({**scope, "method": "GET"}, receive, without_body)


logger = logging.getLogger("tokenroof.request")


@dataclass(frozen=True, slots=True)
class RequestLog:
    """ASGI middleware: logs each request under an id, and turns an unforeseen error into a calm 500 with that id."""

    app: ASGIApp
    failure: Callable[[Scope, str], Response]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; log how it went."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id, started, status = secrets.token_hex(6), time.perf_counter(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception:
            logger.exception("unforeseen error in request %s", request_id)
            if status:
                raise
            await self.failure(scope, request_id)(scope, receive, watched)
        finally:
            logger.info(
                json.dumps(
                    {
                        "id": request_id,
                        "method": scope["method"],
                        "route": getattr(scope.get("route"), "path", None),
                        "status": status,
                        "ms": round(1000 * (time.perf_counter() - started), 1),
                    }
                )
            )


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
