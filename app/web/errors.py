"""Refusals and failures as responses: problem+json below /api, a page elsewhere."""

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from app.scenario.refusal import ScenarioError
from app.web.problem import ProblemError, invalid, refusals_of, refusals_of_items
from app.web.templating import Templates
from app.web.urls import API

SENTENCES: Mapping[int, str] = {
    404: "There is nothing at this address.",
    405: "This address does not take that method.",
    413: "That is more than the server reads.",
}


class ErrorPages:
    """Answers for what went wrong, in the face that was asked."""

    def __init__(self, templates: Templates) -> None:
        self._templates = templates

    def install(self, app: FastAPI) -> None:
        """Let `app` answer its exceptions through these pages."""
        app.add_exception_handler(ProblemError, self._problem)
        app.add_exception_handler(ScenarioError, self._scenario)
        app.add_exception_handler(RequestValidationError, self._validation)
        app.add_exception_handler(HTTPException, self._http)

    def answer(self, path: str, problem: ProblemError) -> Response:
        """`problem` for the face that `path` belongs to."""
        if path.startswith((f"{API}/", "/healthz", "/readyz", "/csp-report")):
            return problem.response()
        context = {"problem": problem, "title": problem.title}
        return self._templates.page("error", context, problem.status, problem.headers)

    def failure(self, scope: Scope, request_id: str) -> Response:
        """500, with nothing of the cause but the id under which it is logged."""
        return self.answer(
            scope["path"], ProblemError(500, f"Something went wrong here; it is logged as {request_id}.")
        )

    async def _problem(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, ProblemError)  # noqa: S101 - what Starlette's typing cannot say
        return self.answer(request.scope["path"], error)

    async def _scenario(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, ScenarioError)  # noqa: S101 - see above
        return self.answer(request.scope["path"], invalid(refusals_of(error)))

    async def _validation(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - see above
        # The first part of a location says body, query, path or header.
        return self.answer(request.scope["path"], invalid(refusals_of_items(error.errors(), skip=1)))

    async def _http(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - see above
        status = error.status_code
        standard = error.detail == HTTPStatus(status).phrase
        detail = SENTENCES.get(status, error.detail) if standard else error.detail
        return self.answer(request.scope["path"], ProblemError(status, str(detail), headers=error.headers or {}))
