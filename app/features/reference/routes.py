"""The API's documentation as a page of ours: drawn from the OpenAPI document, without script or foreign address.

Where browsers report a breach of the content security policy: counted in the log, never stored.

Is the process up, and does the store work.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from json import dumps
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import Response

from app.checkpoint.text import StrictJsonError, loads
from app.features.services import ServicesDep
from app.store.schema import ready as store_ready
from app.web.problem import JsonResponse
from app.web.templating import TemplatesDep
from app.web.urls import API

pages = APIRouter(include_in_schema=False)
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


@pages.get("/docs")
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


reports = logging.getLogger("tokenroof.policy")
MOST_CHARACTERS = 200


@pages.post("/csp-report")
async def report(request: Request) -> Response:
    """204, whatever was sent; a readable report becomes one line of the log."""
    try:
        body = loads(await request.body())
    except StrictJsonError:
        return Response(status_code=204)
    found: Any = body.get("csp-report") if isinstance(body, dict) else None
    if isinstance(found, dict):
        line = {
            "directive": str(found.get("effective-directive"))[:MOST_CHARACTERS],
            "blocked": _origin(str(found.get("blocked-uri"))[:MOST_CHARACTERS]),
        }
        reports.warning("policy breach %s", json.dumps(line))
    return Response(status_code=204)


def _origin(address: str) -> str:
    """Of a blocked address no more than its host: the path may be a link, and so a secret."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "unreadable"
    return parts.netloc or parts.scheme or parts.path.partition("/")[0]


logger = logging.getLogger("tokenroof.health")
api = APIRouter(tags=["health"])


class Health(BaseModel):
    """Answer of the health checks."""

    status: str
    reason: str | None = None


@api.get("/healthz", response_model=Health)
async def healthz() -> Response:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@api.get("/readyz", response_model=Health, responses={503: {"model": Health}})
def readyz(services: ServicesDep) -> Response:
    """A write and a read reach the disk, in a transaction that is rolled back."""
    fault = services.store_fault
    if services.engine is not None:
        state = store_ready(services.engine)
        fault = state.reason if not state.ready else None
    if fault is None:
        return JsonResponse({"status": "ok"})
    logger.error("not ready: %s", fault)  # the reason names paths of the machine, which are the operator's
    return JsonResponse({"status": "unavailable", "reason": "The database cannot be used; see the log."}, 503)
