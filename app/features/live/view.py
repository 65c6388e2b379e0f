"""The figures of a server in words: what was measured, what is predicted, and how one divides by the other.

The live page's moving part, ready to show: servers with their prediction beside them, the roofline, the cards.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.quantity import quantity, significant
from app.catalog.catalog import Catalog
from app.features.live.accelerators import SourceView, source_view
from app.features.live.roofline import MeasuredRoofs, live_roofline
from app.machine.live.board import Board, ServerPanel
from app.machine.live.limits import Hold
from app.machine.live.predicted import Beside
from app.machine.probes.reading import Reading
from app.scenario.scenario import Scenario
from app.web import urls
from app.web.figure import Chart

DIGITS = 3
_TILES = (
    ("output_tokens_per_s", ()),
    ("prompt_tokens_per_s", ()),
    ("ttft_p50_s", (("ttft_p99_s", "99 of 100 within"),)),
    ("itl_mean_s", (("itl_p50_s", "half within"), ("itl_p99_s", "99 of 100 within"))),
    ("latency_p50_s", ()),
    ("kv_cache_usage", ()),
    ("mbu", ()),
    ("mfu", ()),
)


@dataclass(frozen=True, slots=True)
class Tile:
    """One measured figure, or the reason why there is none; and what was predicted for it."""

    id: str
    label: str
    value: str
    unit: str
    absence: str
    beside: str
    predicted: str
    interval: str
    verdict: str
    read_from: str
    note: str


def tiles(panel: ServerPanel, figures: Mapping[str, Beside]) -> list[Tile]:
    """The requests, then every figure that has a tile; none for a server that could not be read."""
    if panel.snapshot.server is None:
        return []
    running = panel.snapshot.server.running
    waiting = panel.snapshot.server.waiting
    beside = "" if waiting.value is None else f"{waiting.value:,.0f} waiting"
    first = Tile(
        "running",
        "Requests running",
        "" if running.value is None else f"{running.value:,.0f}",
        "",
        _reason(running),
        beside,
        _room(panel),
        "",
        "",
        running.read_from,
        "",
    )
    return [
        first,
        *(_tile(figures[name], [(figures[id_], words) for id_, words in besides]) for name, besides in _TILES),
    ]


def _room(panel: ServerPanel) -> str:
    if panel.answered is None:
        return ""
    return f"room for {panel.answered.evaluation.measures.memory.max_concurrency:,} of them, as predicted"


def _tile(figure: Beside, besides: Sequence[tuple[Beside, str]]) -> Tile:
    value, unit = "", ""
    if figure.measured.value is not None:
        value, _, unit = _written(figure.measured.value, figure.unit).partition(" ")
    beside = ", ".join(
        f"{words} {_written(other.measured.value, other.unit)}" for other, words in besides if other.measured.value
    )
    predicted, interval, verdict = "", "", ""
    if figure.predicted is not None and figure.predicted.mid is not None:
        predicted = f"predicted {_written(figure.predicted.mid, figure.unit)}"
        low, high = figure.predicted.low, figure.predicted.high
        if low is not None and high is not None:
            interval = f"{_between(low, high, figure.unit)} in eight cases of ten"
        if figure.ratio is not None:
            inside = {True: ", inside the interval", False: ", outside the interval", None: ""}[figure.inside]
            verdict = f"{significant(figure.ratio, DIGITS)} × the prediction{inside}"
    return Tile(
        figure.id,
        figure.label,
        value,
        unit,
        _reason(figure.measured),
        beside,
        predicted,
        interval,
        verdict,
        figure.measured.read_from,
        figure.note,
    )


def _written(value: float, unit: str) -> str:
    if unit == "":
        return f"{significant(100 * value, DIGITS)} %"
    if unit in ("tokens/s", "tokens"):
        return f"{significant(value, DIGITS)} {unit}"
    return quantity(value, unit, DIGITS)


def _between(low: float, high: float, unit: str) -> str:
    """Both ends, the unit once where it is one for both."""
    ends = _written(low, unit), _written(high, unit)
    number, _, of_low = ends[0].partition(" ")
    return f"{number if of_low == ends[1].partition(' ')[2] else ends[0]} to {ends[1]}"


def _reason(reading: Reading[float]) -> str:
    return "" if reading.absence is None else reading.absence.message


def capacity_words(figure: Beside | None) -> str:
    """What the cache holds by the server's word, and by the prediction."""
    if figure is None or figure.measured.value is None:
        return ""
    told = f"The server’s cache holds {figure.measured.value:,.0f} tokens ({figure.measured.read_from})"
    if figure.predicted is None or figure.predicted.mid is None:
        return f"{told}."
    low, high = figure.predicted.low, figure.predicted.high
    between = f", {low:,.0f} to {high:,.0f} likely" if low is not None and high is not None and low < high else ""
    ratio = "" if figure.ratio is None else f"; {significant(figure.ratio, DIGITS)} × the prediction"
    return f"{told}; predicted {figure.predicted.mid:,.0f}{between}{ratio}."


KINDS = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tensorrt-llm": "TensorRT-LLM",
    "llama.cpp": "llama.cpp",
    "triton": "Triton",
    "tgi": "TGI",
    "dynamo": "Dynamo",
    "endpoint-picker": "llm-d endpoint picker",
}


@dataclass(frozen=True, slots=True)
class ServerView:
    """One server. `load` says under which load the prediction was made, `capacity` what the cache holds, `doubt` why it
    is of something else than what runs; `hold` and `notes` what is in the way and what was taken for granted, where
    there are several servers.
    """

    id: str
    name: str
    kind: str
    absence: str | None
    families: Sequence[str]
    stale: bool
    read: str
    model: str
    load: str
    obstacle: str | None
    tiles: Sequence[Tile]
    capacity: str
    settings: Sequence[tuple[str, str]]
    doubt: str | None = None
    hold: Hold | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class LiveView:
    """What the stream sends. `machine_href` fills the workbench from what was probed; None where that is too little.

    `hold` is what is in the way where there is one server at most; `scenario_words` what the prediction is of, "" where
    each of several servers has its own.
    """

    hold: Hold | None
    servers: Sequence[ServerView]
    sources: Sequence[SourceView]
    chart: Chart | None
    machine_href: str | None
    machine_notes: Sequence[str]
    scenario_words: str

    @property
    def absent_sources(self) -> Sequence[SourceView]:
        """Probes of which nothing was read."""
        return [source for source in self.sources if not source.is_there]

    def chart_data(self) -> list[dict[str, Any]]:
        chart = self.chart
        if chart is None:
            return []
        return [{"id": chart.id, "title": chart.title, "caption": chart.question, "figure": chart.figure}]


def live_view(board: Board, catalog: Catalog, measured: MeasuredRoofs | None = None) -> LiveView:
    """`board` in words and figures."""
    chart = None
    if board.accelerator is not None and board.compute is not None:
        chart = live_roofline(board.accelerator, board.compute, board.trails, board.evaluation, measured)
    machine, several = board.machine, len(board.panels) > 1
    return LiveView(
        hold=None if several else board.hold,
        servers=[_server(panel, board.is_probed, several, catalog) for panel in board.panels],
        sources=[source_view(snapshot, catalog) for snapshot in board.snapshots if snapshot.kind != "server"],
        chart=chart,
        machine_href=urls.workbench(urls.scenario_items(board.scenario))
        if board.is_probed and board.scenario
        else None,
        machine_notes=() if several or not board.is_probed else machine.notes,
        scenario_words="" if several and board.is_probed else _words(board.scenario, catalog),
    )


def _words(scenario: Scenario | None, catalog: Catalog) -> str:
    """Model, cards and engine of the prediction."""
    if scenario is None:
        return ""
    model = catalog.models.get(scenario.model.id or "")
    card = catalog.accelerators.get(scenario.hardware.id or "")
    names = (
        model.name if model else scenario.model.name or "a model of your own",
        card.name if card else "a card of your own",
    )
    split = scenario.parallelism
    gpus = scenario.hardware.count or split.tensor * split.pipeline * split.data
    engine = catalog.engines.get(scenario.engine.id)
    under = scenario.engine.id if engine is None else engine.name
    apart = "" if scenario.techniques.disaggregation is None else ", with prompts prefilled apart"
    return f"{names[0]} on {f'{gpus} × ' if gpus > 1 else ''}{names[1]} under {under}{apart}"


def _server(panel: ServerPanel, is_probed: bool, several: bool, catalog: Catalog) -> ServerView:
    snapshot, server = panel.snapshot, panel.snapshot.server
    kind = "" if server is None else KINDS.get(server.kind, server.kind)
    version = snapshot.driver_version.value
    window = "" if server is None or not server.window_s else f", rates over {significant(server.window_s, 2)} s"
    words = _words(panel.scenario, catalog) if is_probed and several else ""
    figures = {figure.id: figure for figure in panel.figures}
    return ServerView(
        id=snapshot.source,
        name=snapshot.label,
        kind=f"{kind} {version}" if version else kind,
        absence=snapshot.absence.message if snapshot.absence else None,
        families=snapshot.families,
        stale=snapshot.stale,
        read=f"{snapshot.taken_at:%H:%M:%S} UTC{window}",
        model="" if server is None or server.model_name.value is None else server.model_name.value,
        load=_load(panel, words),
        obstacle=panel.obstacle,
        tiles=tiles(panel, figures),
        capacity=capacity_words(figures.get("kv_capacity_tokens")),
        settings=[] if server is None else sorted(server.settings.items()),
        doubt=panel.doubt,
        hold=panel.hold if several else None,
        notes=panel.notes if several else (),
    )


def _load(panel: ServerPanel, words: str) -> str:
    """Under which load the prediction was made; `words` say what it is of, where that is told nowhere else."""
    loaded = panel.loaded
    if loaded is None:
        return ""
    if loaded.is_idle:
        return "No request is running, so there is nothing to put beside a prediction."
    taken = f"as measured: {', '.join(loaded.taken)}" if loaded.taken else ""
    kept = f"as asked: {', '.join(loaded.kept)}" if loaded.kept else ""
    of = f" for {words}" if words else ""
    when = "of its last reading" if panel.snapshot.stale else "of this moment"
    return f"Predicted{of} at the load {when}; {'; '.join(part for part in (taken, kept) if part)}."
