"""JSON in and out: routes that read it strictly, answers that write it, and refusals as problems (RFC 9457).

What somebody may have meant who asked for an item that is not there.
"""

import math
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from difflib import get_close_matches
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import HTTPException, Request
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.responses import Response

from app.checkpoint.text import StrictJsonError, dumps, loads
from app.scenario.refusal import Refusal, ScenarioError


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


MEDIA_TYPE = "application/problem+json"
MOST_ERRORS = 50
_MEMBER = re.compile(r"<\w+\.\w+: ('[^']*')>")


class ProblemError(Exception):
    """An answer other than the one that was asked for; `errors` say what is wrong, each at its path."""

    def __init__(
        self, status: int, detail: str, errors: Sequence[Refusal] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        self.status, self.detail, self.errors, self.headers = status, detail, errors, dict(headers or {})
        super().__init__(detail)

    @property
    def title(self) -> str:
        return HTTPStatus(self.status).phrase

    def document(self) -> dict[str, Any]:
        """The problem as a JSON object."""
        body: dict[str, Any] = {
            "type": "about:blank",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        if self.errors:
            body["errors"] = [{"path": e.path, "message": e.message} for e in self.errors[:MOST_ERRORS]]
        return body

    def response(self) -> Response:
        """The problem as a response."""
        return JsonResponse(self.document(), self.status, self.headers, MEDIA_TYPE)


def invalid(errors: Sequence[Refusal]) -> ProblemError:
    """422 for input that names something unknown or impossible."""
    count = len(errors)
    noun = "One field is" if count == 1 else f"{count} fields are"
    return ProblemError(422, f"{noun} not right; see errors.", errors)


def refusals_of(error: ValidationError | ScenarioError) -> list[Refusal]:
    """What a validation found, at dotted paths; the input itself is never repeated."""
    if isinstance(error, ScenarioError):
        return list(error.refusals)
    return refusals_of_items(error.errors(include_url=False, include_context=True, include_input=False))


def refusals_of_items(items: Iterable[Mapping[str, Any]], skip: int = 0) -> list[Refusal]:
    """The same for pydantic's error items; `skip` leading parts of each location are left out."""
    return [Refusal(_path(item["loc"][skip:]), _message(item)) for item in items]


def _path(location: Sequence[str | int]) -> str:
    # In brackets stand pydantic's own words: a key as such, a tag of a union.
    parts = [str(part) for part in location if not str(part).startswith("[")]
    return ".".join(part if len(part) <= 60 else f"{part[:60]}…" for part in parts)


def _message(item: Mapping[str, Any]) -> str:
    kind, context = item["type"], item.get("ctx") or {}
    if kind == "extra_forbidden":
        return "There is no such field."
    if kind == "missing":
        return "This field is needed."
    if kind in ("int_type", "int_parsing", "int_from_float"):
        return "Must be a whole number."
    if kind in ("float_type", "float_parsing", "finite_number"):
        return "Must be a number, and a finite one."
    if kind in ("enum", "literal_error"):
        # Of a Literal of enum members pydantic tells the members: <Dtype.BF16: 'bf16'>.
        expected = _MEMBER.sub(r"\1", str(context.get("expected", "the values in the documentation")))
        return f"Must be one of {expected}."
    if kind == "string_pattern_mismatch":
        return "Must be an id: small letters, digits, dot, dash and underscore."
    message = str(item["msg"]).removeprefix("Value error, ")
    return message if message.endswith(".") else f"{message}."


MOST_CHARACTERS = 60
MOST_NAMES = 5


def near_ids(given: str, names: Mapping[str, str]) -> list[str]:
    """At most five ids of `names` (name by id) that hold what was given, else those that look most like it."""
    wanted = given[:MOST_CHARACTERS].casefold().replace("_", "-").replace(" ", "-").strip("-")
    if not wanted:
        return []
    spelled = {id_: f"{id_} {name.casefold().replace(' ', '-')}" for id_, name in names.items()}
    holding = [id_ for id_, text in spelled.items() if wanted in text]
    if holding:
        return holding[:MOST_NAMES]
    near = get_close_matches(wanted, list(names), n=MOST_NAMES, cutoff=0.5)
    by_name = {name.casefold().replace(" ", "-"): id_ for id_, name in names.items()}
    near += [by_name[name] for name in get_close_matches(wanted, list(by_name), n=MOST_NAMES, cutoff=0.6)]
    return list(dict.fromkeys(near))[:MOST_NAMES]
