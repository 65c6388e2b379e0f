"""Routes that read JSON strictly, and the responses that write it."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from app.strict_json import StrictJsonError, dumps, loads


class BadJsonError(HTTPException):
    """The body is not JSON that could be answered in JSON again."""

    def __init__(self, reason: str) -> None:
        super().__init__(400, f"The body is {reason}" if reason.startswith("not") else f"The body is refused: {reason}")


class _StrictRequest(Request):
    async def json(self) -> Any:
        try:
            return loads(await self.body())
        except StrictJsonError as error:
            raise BadJsonError(str(error)) from error


class StrictRoute(APIRoute):
    """A route whose JSON body holds no NaN, infinity, overflow, twin key or absurd depth."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given a request that parses strictly."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return strict


class JsonResponse(Response):
    """JSON that refuses to carry a NaN or an infinity."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """`content` as JSON bytes."""
        return dumps(content)
