"""What every refusal looks like, checked in one place."""

from typing import Any

from httpx2 import Response

from app.web.problem import MEDIA_TYPE


def problem(response: Response, status: int) -> dict[str, Any]:
    """The problem in `response`, which is one and has this status."""
    assert response.status_code == status, response.text[:500]
    assert response.headers["content-type"] == MEDIA_TYPE
    body: dict[str, Any] = response.json()
    assert set(body) - {"errors", "suggestions"} == {"type", "title", "status", "detail"}
    assert body["status"] == status
    return body


def paths(response: Response, status: int = 422) -> list[str]:
    """The paths of the errors of a refusal, in order."""
    errors = problem(response, status)["errors"]
    assert all(set(error) == {"path", "message"} and error["message"] for error in errors)
    return [error["path"] for error in errors]
