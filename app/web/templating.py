"""The templates: strict, autoescaped, with the few functions every page may call."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.calc.quantity import quantity, significant
from app.checkpoint.text import dumps
from app.scenario.query import BY_NAME
from app.settings import ROOT
from app.web import urls
from app.web.assets import Assets

VARY = {"Vary": "HX-Request"}


class Templates:
    """Renders a page, or a part that pages include: a page and its fragment are the same template."""

    def __init__(self, assets: Assets) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(ROOT / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals.update(asset=assets.url, urls=urls, inputs=BY_NAME)
        self._environment.filters.update(quantity=quantity, significant=significant, json_data=json_data)

    def page(
        self, name: str, context: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
    ) -> HTMLResponse:
        html = self._environment.get_template(f"pages/{name}.html").render(**context)
        return HTMLResponse(html, status, VARY | {"Cache-Control": "no-cache"} | dict(headers or {}))

    def partial(
        self, name: str, context: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
    ) -> HTMLResponse:
        """A part of a page, as a fragment. Never cached under the page's address."""
        html = self.partial_html(name, context)
        return HTMLResponse(html, status, VARY | {"Cache-Control": "no-store"} | dict(headers or {}))

    def partial_html(self, name: str, context: Mapping[str, Any]) -> str:
        """The text of a part, exactly as the page includes it."""
        return self._environment.get_template(f"partials/_{name}.html").render(**context)


def templates_of(request: Request) -> Templates:
    """The templates of the app that answers `request`."""
    templates: Templates = request.app.state.templates
    return templates


TemplatesDep = Annotated[Templates, Depends(templates_of)]


def is_fragment(request: Request) -> bool:
    """True when htmx wants a part of the page, not the page."""
    headers = request.headers
    return headers.get("hx-request") == "true" and headers.get("hx-request-type") == "partial"


def json_data(value: Any) -> str:
    """JSON that may stand inside a script element of type application/json.

    `<` is written as an escape, so that no text in it can end the element; the template marks it safe for that reason.
    """
    text = dumps(value).decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
