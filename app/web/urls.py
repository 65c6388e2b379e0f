"""Every address of the product, made in one place."""

from collections.abc import Iterable, Sequence
from urllib.parse import quote, urlencode

from starlette.requests import Request

from app.scenario.query import query_items
from app.scenario.scenario import Scenario
from app.settings import Settings

API = "/api/v1"
NAVIGATION = (
    ("/", "Workbench"),
    ("/learn", "Learn"),
    ("/optimizations", "Optimizations"),
    ("/compare", "Compare"),
    ("/models", "Models"),
    ("/hardware", "Hardware"),
    ("/validation", "Validation"),
    ("/paste", "Paste"),
    ("/benchmarks", "Benchmarks"),
    ("/live", "Live"),
    ("/docs", "API"),
)
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


def learn(items: Items = ()) -> str:
    """The story of the memory wall, told with the scenario of the items."""
    return f"/learn?{query_string(items)}" if items else "/learn"


def learn_api(items: Items = ()) -> str:
    """The JSON twin of the lesson."""
    return f"{API}{learn(items)}"


def optimizations(items: Items = (), at: str = "") -> str:
    """Every optimization on the scenario of the items; at one of them where it is named."""
    page = f"/optimizations?{query_string(items)}" if items else "/optimizations"
    return f"{page}#{at}" if at else page


def optimizations_api(items: Items) -> str:
    """The JSON twin of that page."""
    return f"{API}/optimizations?{query_string(item for item in items if item[0] != 'units')}"


def chart_data(chart: str, extension: str, items: Items) -> str:
    """The numbers behind one chart, as CSV or JSON."""
    return f"/export/{chart}.{extension}?{query_string(items)}"


def models(items: Items = ()) -> str:
    """The list of models, as the items narrow and order it."""
    return f"/models?{query_string(items)}" if items else "/models"


def models_api(items: Items = ()) -> str:
    """The JSON twin of that list."""
    return f"{API}{models(items)}"


def model(id_: str) -> str:
    """The page of one model."""
    return f"/models/{quote(id_, safe='')}"


def model_api(id_: str) -> str:
    """The JSON twin of that page."""
    return f"{API}{model(id_)}"


def hardware(items: Items = ()) -> str:
    """The list of accelerators, as the items narrow and order it."""
    return f"/hardware?{query_string(items)}" if items else "/hardware"


def hardware_api(items: Items = ()) -> str:
    """The JSON twin of that list."""
    return f"{API}{hardware(items)}"


def accelerator(id_: str) -> str:
    """The page of one accelerator."""
    return f"/hardware/{quote(id_, safe='')}"


def accelerator_api(id_: str) -> str:
    """The JSON twin of that page."""
    return f"{API}{accelerator(id_)}"


def validation(items: Items = ()) -> str:
    """Predicted against measured, for the measurements that the items ask for."""
    return f"/validation?{query_string(items)}" if items else "/validation"


def validation_api(items: Items = ()) -> str:
    """The JSON twin of that page."""
    return f"{API}{validation(items)}"


def model_editor(items: Items = ()) -> str:
    """The editor of a custom model, started from what the items say."""
    return f"/models/custom?{query_string(items)}" if items else "/models/custom"


def accelerator_editor(items: Items = ()) -> str:
    """The editor of a custom accelerator, filled in with what the items say."""
    return f"/hardware/custom?{query_string(items)}" if items else "/hardware/custom"


def importing(items: Items = ()) -> str:
    """The import of a configuration, with what the items say filled in."""
    return f"/import?{query_string(items)}" if items else "/import"


def launching(items: Items) -> str:
    """The commands that launch a scenario."""
    return f"/launch?{query_string(item for item in items if item[0] != 'units')}"


def compare(texts: Sequence[str] = (), base: int = 1, *, hides_equal: bool = False, units: str = "gb") -> str:
    """Plans side by side: a text for each, as an address names it; `base` is the place of the baseline, from 1."""
    items = [("s", text) for text in texts]
    items += [("base", str(base))] if base > 1 else []
    items += [("equal", "hide")] if hides_equal else []
    items += [("units", units)] if units != "gb" else []
    # An equals sign or a slash inside a value needs no escape, and there are many of them here.
    query = urlencode(items, quote_via=quote, safe=":,[]{}=/")
    return f"/compare?{query}" if items else "/compare"


def compare_api(texts: Sequence[str], base: int) -> str:
    """The JSON twin of that page."""
    return f"{API}{compare(texts, base)}"


def compare_data(chart: str, extension: str, address: str) -> str:
    """The numbers behind one chart of the comparison at `address`, as CSV or JSON."""
    return f"/compare/{chart}.{extension}?{address.partition('?')[2]}"


def production() -> str:
    """A deployment in production, as published, beside its prediction."""
    return "/production"


def benchmarks(items: Items = ()) -> str:
    """The page that takes results of a benchmark, for the scenario of the items."""
    return f"/benchmarks?{query_string(items)}" if items else "/benchmarks"


def calibration(slug: str) -> str:
    """A calibration that was kept."""
    return f"/calibrations/{slug}"


def calibration_api(slug: str) -> str:
    """Its JSON twin."""
    return f"{API}/calibrations/{slug}"


def live(items: Items = ()) -> str:
    """The running machine beside the prediction of the items; with none, of what the machine itself amounts to."""
    return f"/live?{query_string(items)}" if items else "/live"


def live_stream(items: Items = ()) -> str:
    """The moving part of that page, as a stream."""
    return f"/live/stream?{query_string(items)}" if items else "/live/stream"


def snapshot(slug: str) -> str:
    """A saved snapshot of the live readings."""
    return f"/live/s/{slug}"


def snapshot_api(slug: str) -> str:
    """The JSON twin of a saved snapshot."""
    return f"{API}/snapshots/{slug}"


def recorded(hours: str = "") -> str:
    """The recorded readings of the last hours."""
    return f"/live/recorded?{query_string([('hours', hours)])}" if hours else "/live/recorded"


def recording_api(hours: str) -> str:
    """The JSON twin of that page."""
    return f"{API}/recording?{query_string([('hours', hours)])}"


def recorded_csv(hours: str) -> str:
    """The same readings as a file."""
    return f"{API}/recording.csv?{query_string([('hours', hours)])}"


def probes_api(items: Items = ()) -> str:
    """The JSON twin of that page."""
    return f"{API}/probes?{query_string(items)}" if items else f"{API}/probes"


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
