"""How refusals look in the API documentation.

The OpenAPI document: FastAPI's, with our problems in the place of its validation errors.
"""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, Field


class FieldError(BaseModel):
    """One field that is not right."""

    path: str = Field(description="Dotted path into what was sent.", examples=["workload.prompt_tokens"])
    message: str = Field(description="What to do about it.")


class Suggested(BaseModel):
    """A family as which a configuration could be read."""

    read_as: str = Field(description="What to send back as `read_as`.")
    because: str = Field(description="What speaks for it.")


class Problem(BaseModel):
    """RFC 9457 problem, sent as application/problem+json."""

    type: str = "about:blank"
    title: str = Field(description="The status in words.")
    status: int = Field(description="HTTP status.")
    detail: str = Field(description="What went wrong.")
    errors: list[FieldError] | None = Field(None, description="Every field that is not right.")
    suggestions: list[Suggested] | None = Field(
        None, description="Import of an unknown model_type: families it could be read as, the likeliest first."
    )


def _problem(description: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": description, "content": {"application/problem+json": {"schema": schema}}}


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: _problem("The body is not JSON, or holds a NaN, an infinity, a twin key or absurd nesting."),
    413: _problem("The body is larger than the server reads."),
    422: _problem("A field is missing, unknown, out of range, or names what is not in the catalog."),
}
IMPORT_PROBLEMS: dict[int | str, dict[str, Any]] = {
    **PROBLEMS,
    403: _problem("Fetching from the hub is not allowed here, or the model is gated."),
    404: _problem("The hub has no such model."),
    502: _problem("The hub cannot be reached, or what it has is not to be read."),
    503: _problem("As many imports as are allowed are under way."),
    504: _problem("The hub took too long."),
}
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: _problem("There is no such item.")}
STORE_PROBLEMS: dict[int | str, dict[str, Any]] = {
    503: _problem("The database is busy (Retry-After says when to ask again) or needs its operator; nothing changed."),
}
LINK_PROBLEMS: dict[int | str, dict[str, Any]] = {
    404: _problem("There is no such link; wrong, malformed and revoked ones are alike."),
    410: _problem("The link has expired."),
    **STORE_PROBLEMS,
}
EDIT_PROBLEMS: dict[int | str, dict[str, Any]] = {403: _problem("The X-Edit-Token is not that of this link.")}
# An expired link may still be revoked, so there is no 410.
REVOKE_PROBLEMS: dict[int | str, dict[str, Any]] = {
    404: LINK_PROBLEMS[404],
    422: _problem("The X-Edit-Token is missing or too long."),
    **STORE_PROBLEMS,
    **EDIT_PROBLEMS,
}
STREAM_PROBLEMS: dict[int | str, dict[str, Any]] = {503: _problem("As many viewers as are allowed are watching.")}


_FASTAPI_ERRORS = ("HTTPValidationError", "ValidationError")


def install_openapi(app: FastAPI) -> None:
    """Let `app` describe itself with this document, made once."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, openapi_version="3.1.0"
    )
    schemas = document["components"]["schemas"]
    for name in _FASTAPI_ERRORS:
        schemas.pop(name, None)
    template = "#/components/schemas/{model}"
    for model in (FieldError, Suggested, Problem):
        schemas[model.__name__] = model.model_json_schema(ref_template=template)
        schemas[model.__name__].pop("$defs", None)
    for responses in _responses(document):
        if "422" in responses:
            responses["422"] = PROBLEMS[422]
    return document


def _responses(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for operations in document["paths"].values():
        for operation in operations.values():
            yield operation["responses"]
