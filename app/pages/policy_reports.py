"""Where browsers report a breach of the content security policy: counted in the log, never stored."""

import json
import logging
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.strict_json import StrictJsonError, loads

logger = logging.getLogger("tokenroof.policy")
MOST_CHARACTERS = 200
router = APIRouter(include_in_schema=False)


@router.post("/csp-report")
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
        logger.warning("policy breach %s", json.dumps(line))
    return Response(status_code=204)


def _origin(address: str) -> str:
    """Of a blocked address no more than its host: the path may be a link, and so a secret."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "unreadable"
    return parts.netloc or parts.scheme or parts.path.partition("/")[0]
