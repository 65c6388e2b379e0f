"""The live page's moving part, ready to show: servers with their prediction beside them, the roofline, the cards."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.notation import significant
from app.catalog.catalog import Catalog
from app.charts.figure import Chart
from app.charts.live_roofline import MeasuredRoofs, live_roofline
from app.live.board import Board, ServerPanel
from app.live.limits import Hold
from app.live_view.cards import SourceView, source_view
from app.live_view.tiles import Tile, capacity_words, tiles
from app.scenario import Scenario
from app.web import urls

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
        """What the browser draws."""
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
