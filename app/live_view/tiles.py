"""The figures of a server in words: what was measured, what is predicted, and how one divides by the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.calc.notation import quantity, significant
from app.live.beside import Beside
from app.live.board import ServerPanel
from app.probes.reading import Reading

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
