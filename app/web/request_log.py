"""One line of JSON a request, and the answer when something unforeseen went wrong.

Neither addresses nor query strings are logged: a link's address is its secret.
"""

import json
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
