"""The API's documentation as a page of ours: drawn from the OpenAPI document, without script or foreign address."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from json import dumps
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.web.templating import TemplatesDep
from app.web.urls import API

router = APIRouter(include_in_schema=False)
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter or property: its type in words, and what it means."""

    name: str
    type: str
    needed: bool
    description: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path."""

    method: str
    path: str
    tag: str
    summary: str
    parameters: tuple[Field, ...]
    body: str | None
    example: str | None
    answers: tuple[tuple[str, str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """One named object of the API."""

    name: str
    description: str
    fields: tuple[Field, ...]


@router.get("/docs")
async def reference(request: Request, templates: TemplatesDep) -> Response:
    """Every endpoint and object of the JSON API."""
    endpoints, schemas = _documentation(request.app)
    context = {
        "endpoints": endpoints,
        "schemas": schemas,
        "twin": f"{API}/openapi.json",
        "about": request.app.description,
    }
    return templates.page("docs", context)


@lru_cache(maxsize=4)
def _documentation(app: Any) -> tuple[tuple[Endpoint, ...], tuple[Schema, ...]]:
    document = app.openapi()
    endpoints = tuple(
        _endpoint(method, path, operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    )
    schemas = tuple(
        Schema(name, schema.get("description", ""), tuple(_properties(schema)))
        for name, schema in sorted(document["components"]["schemas"].items())
    )
    return endpoints, schemas


def _endpoint(method: str, path: str, operation: Json) -> Endpoint:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = content.get("schema", {})
    examples = schema.get("examples") or [content.get("example")]
    return Endpoint(
        method=method.upper(),
        path=path,
        tag=(operation.get("tags") or ["other"])[0],
        summary=operation.get("description", ""),
        parameters=tuple(
            Field(p["name"], f"{p['in']}, {_type(p['schema'])}", p.get("required", False), p.get("description", ""))
            for p in operation.get("parameters", ())
        ),
        body=_type(schema) if schema else None,
        example=dumps(examples[0], indent=2) if examples and examples[0] else None,
        answers=tuple(
            (status, answer.get("description", ""), _answer_type(answer))
            for status, answer in sorted(operation["responses"].items())
        ),
    )


def _answer_type(answer: Json) -> str | None:
    for media_type, content in answer.get("content", {}).items():
        return f"{_type(content.get('schema', {}))} ({media_type})"
    return None


def _properties(schema: Json) -> Iterator[Field]:
    needed = schema.get("required", ())
    for name, value in schema.get("properties", {}).items():
        description = value.get("description", "")
        if "default" in value:
            description = f"{description} Default {dumps(value['default'])}.".strip()
        yield Field(name, _type(value), name in needed, description)


def _type(schema: Json) -> str:
    """A schema in a few words; the name of an object where it has one."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_type(part) for part in schema[key]))
    if "allOf" in schema:
        return _type(schema["allOf"][0])
    if "const" in schema:
        return dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return f"{kind}{_range(schema)}"


def _range(schema: Json) -> str:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum")
    if low is None and high is None:
        return ""
    opening = "above " if "exclusiveMinimum" in schema else ""
    return f" {opening}{low:g} to {high:g}" if low is not None and high is not None else ""
