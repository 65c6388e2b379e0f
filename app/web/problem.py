"""Refusals on their way out: one problem shape (RFC 9457) for the API, field messages for the pages."""

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError
from starlette.responses import Response

from app.refusal import Refusal, ScenarioError
from app.web.json_route import JsonResponse

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
        """The status in words."""
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
