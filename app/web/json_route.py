"""Routes that read JSON strictly, and the responses that write it."""

import math
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import HTTPException, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from app.strict_json import StrictJsonError, dumps, loads


class BadJsonError(HTTPException):
    """The body is not JSON that could be answered in JSON again."""

    def __init__(self, reason: str) -> None:
        super().__init__(400, f"The body is {reason}" if reason.startswith("not") else f"The body is refused: {reason}")


class _StrictRequest(Request):
    constants_are_text = False

    async def json(self) -> Any:
        try:
            return loads(await self.body(), constants_are_text=self.constants_are_text)
        except StrictJsonError as error:
            raise BadJsonError(str(error)) from error


class _FileRequest(_StrictRequest):
    constants_are_text = True


class StrictRoute(APIRoute):
    """A route whose JSON body holds no NaN, infinity, overflow, twin key or absurd depth."""

    request_class: type[_StrictRequest] = _StrictRequest

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given a request that parses strictly."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(self.request_class(request.scope, request.receive))

        return strict


class FileRoute(StrictRoute):
    """The same for a body that brings somebody's file: the constants that JSON does not have are read as texts."""

    request_class = _FileRequest


class JsonResponse(Response):
    """JSON that refuses to carry a NaN or an infinity."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """`content` as JSON bytes.

        Raises:
            ValueError: a number in it is not finite; orjson alone would write null.
        """
        try:
            text = orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS)
        except TypeError:  # a whole number of more than 64 bits
            return dumps(content)
        waiting = [content]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                waiting.extend(value.values())
            elif isinstance(value, list | tuple):
                waiting.extend(value)
            elif isinstance(value, float) and not math.isfinite(value):
                raise ValueError("a number that is not finite is not JSON compliant")
        return text
