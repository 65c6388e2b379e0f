"""The OpenAPI document: FastAPI's, with our problems in the place of its validation errors."""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.api.problems import PROBLEMS, FieldError, Problem, Suggested

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
