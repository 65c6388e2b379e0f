"""Every address of the product, made in one place."""

from collections.abc import Iterable, Sequence
from urllib.parse import quote, urlencode

from starlette.requests import Request

from app.scenario import Scenario
from app.scenario_query import query_items
from app.settings import Settings

API = "/api/v1"
NAVIGATION = (("/", "Workbench"), ("/live", "Live"), ("/docs", "API"))
Items = Sequence[tuple[str, str]]


def query_string(items: Iterable[tuple[str, str]]) -> str:
    """Items as a query string, in their order."""
    return urlencode(list(items), quote_via=quote, safe=":,[]{}")


def workbench(items: Items = ()) -> str:
    """The workbench, showing what the items say."""
    return f"/?{query_string(items)}" if items else "/"


def scenario_items(scenario: Scenario, units: str = "gb") -> list[tuple[str, str]]:
    """The items that give `scenario` back, every field written out; the view's units last."""
    view = [("units", units)] if units != "gb" else []
    return [*query_items(scenario), *view]


def evaluate_api(items: Items) -> str:
    """The JSON twin of the workbench."""
    return f"{API}/evaluate?{query_string(item for item in items if item[0] != 'units')}"


def chart_data(chart: str, extension: str, items: Items) -> str:
    """The numbers behind one chart, as CSV or JSON."""
    return f"/export/{chart}.{extension}?{query_string(items)}"


def saved(slug: str) -> str:
    """A saved configuration."""
    return f"/c/{slug}"


def saved_api(slug: str) -> str:
    """The JSON twin of a saved configuration."""
    return f"{API}/configurations/{slug}"


def absolute(request: Request, settings: Settings, path: str) -> str:
    """`path` with scheme and host: the operator's public address, else the one the request used."""
    base = settings.public_url or f"{request.url.scheme}://{request.headers.get('host', 'localhost')}"
    return base.rstrip("/") + path
