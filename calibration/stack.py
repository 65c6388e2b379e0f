"""All rows timed at once by the product's own formulas: each operator becomes an array over the rows.

Operators are lined up by kind: the third matrix of every row stands in the third place, and rows that have fewer hold
zeros there. What each reaches is an array too, because it is the fit that moves it.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from app.calc.time.expected.floors import Piece
from app.calc.time.expected.passes import Chunks, Slope, Timed, Wires, decode_time, pipeline_share, prefill_time, stay
from app.calc.time.expected.reached import Format, Kind, Reach
from app.catalog.measurements import Metric
from calibration.parameters import Parameters, Vector
from calibration.rows import Row

_OPERATORS = {
    Kind.MATRIX: "matrix",
    Kind.HEAD: "matrix",
    Kind.EXPERTS: "experts",
    Kind.ATTENTION: "attention",
    Kind.STATE: "state",
    Kind.LIGHT: "light",
}
_Reaching = Callable[[Vector, Vector, Vector], Reach]


@dataclass(frozen=True, slots=True)
class _Place:
    """One operator of all rows, and what it reaches as a function of moves, slowdown and time of calls."""

    kind: Kind
    flops: Vector
    bytes: Vector
    link_bytes: Vector
    calls: Vector
    peak_flops_per_s: Vector
    reaching: _Reaching

    def timed(self, moves: Vector, slowdown: Vector, calls: Vector) -> Timed:
        """With what it reaches after the moves."""
        reach = self.reaching(moves, slowdown, calls)
        return Timed(self.kind, self.flops, self.bytes, self.link_bytes, self.calls, self.peak_flops_per_s, reach)


class Stack:
    """Predictions of all rows as a function of the parameters' moves."""

    def __init__(self, rows: Sequence[Row], parameters: Parameters) -> None:
        self._rows, self._parameters = rows, parameters
        self._keys = [row.keys for row in rows]
        self._decode = self._lined_up([row.decode for row in rows])
        self._prompt = self._lined_up([row.prompt for row in rows])
        self._busy = self._lined_up([row.busy for row in rows])
        workloads = [row.deployment.workload for row in rows]
        prompt = _array([w.prompt_tokens for w in workloads])
        new = prompt - _array([w.cached_prompt_tokens for w in workloads])
        self._chunks = Chunks(new, prompt, _array([row.deployment.engine.step_tokens for row in rows]))
        cards = [row.deployment.accelerator for row in rows]
        self._wires = Wires(
            _array([card.bandwidth_bytes_per_s for card in cards]),
            _array([card.link_bytes_per_s_one_way or 0.0 for card in cards]),
        )
        self._stages = _array([row.deployment.split.pipeline for row in rows])
        self._on_rank = np.maximum(1.0, _array([row.batch / row.deployment.split.data for row in rows]))
        self._running = _array([row.running for row in rows])
        self._output, self._prompt_tokens, self._new = _array([w.output_tokens for w in workloads]), prompt, new
        self._metric = np.array([row.measurement.metric for row in rows])
        names = (
            "software",
            "calls",
            "attention_half_tokens",
            "prefill_half_tokens",
            "step_s",
            "sequence_s",
            "request_s",
            "wait_share",
            "wait_power",
        )
        self._columns = {name: self._column(name) for name in names}

    def predict(self, moves: Vector) -> Vector:
        """What the product would answer for each row, in the unit of its measurement."""
        of = {name: column(moves) for name, column in self._columns.items()}
        slowdown, calls = np.maximum(1.0, of["software"]), of["calls"]
        slope = Slope(self._chunks, of["attention_half_tokens"], of["prefill_half_tokens"])

        def timed(places: list[_Place]) -> list[Timed]:
            return [place.timed(moves, slowdown, calls) for place in places]

        step = decode_time(timed(self._decode), self._wires).total_s
        step = step + (of["step_s"] + of["sequence_s"] * self._on_rank) * slowdown
        prompt = prefill_time(timed(self._prompt), self._wires, slope)
        busy = prefill_time(timed(self._busy), self._wires, slope)
        alone = prompt.alone.total_s * pipeline_share(self._chunks, self._stages)
        found = stay(
            self._on_rank,
            self._output,
            step,
            alone,
            of["request_s"],
            busy.marginal_s / self._stages,
            np.minimum(1.0, of["wait_share"]),
            np.minimum(1.0, of["wait_power"]),
        )
        rate = self._running * self._output / found.residency_s
        answers = {
            Metric.TTFT: found.ttft_s,
            Metric.TPOT: found.tpot_s,
            Metric.PER_USER: 1 / found.tpot_s,
            Metric.OUTPUT: rate,
            Metric.TOTAL: rate * (self._prompt_tokens + self._output) / self._output,
            Metric.PREFILL: self._new / alone,
            Metric.DECODE: 1 / step,
        }
        result = np.zeros(len(self._rows))
        for metric, values in answers.items():
            result = np.where(self._metric == metric, values, result)
        return result

    def _column(self, law: str) -> Callable[[Vector], Vector]:
        return self._parameters.column(law, self._keys, [Format.WIDE] * len(self._keys)).values

    def _lined_up(self, passes: Sequence[Sequence[Piece]]) -> list[_Place]:
        places: dict[tuple[Kind, int], list[Piece | None]] = {}
        for number, found in enumerate(passes):
            counts: dict[Kind, int] = defaultdict(int)
            for piece in found:
                place = places.setdefault((piece.kind, counts[piece.kind]), [None] * len(passes))
                place[number] = piece
                counts[piece.kind] += 1
        return [self._place(kind, pieces) for (kind, _), pieces in places.items()]

    def _place(self, kind: Kind, found: Sequence[Piece | None]) -> _Place:
        def of(name: str, default: float) -> Vector:
            return _array([default if piece is None else getattr(piece, name) for piece in found])

        reaching = self._reaching(kind, [Format.WIDE if piece is None else piece.format for piece in found], of)
        return _Place(
            kind,
            of("flops", 0.0),
            of("bytes", 0.0),
            of("link_bytes", 0.0),
            of("calls", 0.0),
            of("peak_flops_per_s", 1.0),
            reaching,
        )

    def _reaching(self, kind: Kind, formats: list[Format], of: Callable[[str, float], Vector]) -> _Reaching:
        def column(law: str) -> Callable[[Vector], Vector]:
            return self._parameters.column(law, self._keys, formats).values

        if kind in _OPERATORS:
            operator = _OPERATORS[kind]
            rate, bandwidth, call = (column(f"{operator}_{what}") for what in ("rate", "bandwidth", "call_s"))
            return lambda moves, slowdown, calls: Reach(
                np.minimum(1.0, rate(moves)) / slowdown,
                np.minimum(1.0, bandwidth(moves)) / slowdown,
                call(moves) * calls * slowdown,
            )
        share, share_power = column("link_share"), column("link_share_power")
        if kind is Kind.EXCHANGE:
            latency = column("exchange_latency_s")
            return lambda moves, slowdown, calls: Reach(
                1.0, np.minimum(1.0, share(moves)) / slowdown, latency(moves) * slowdown
            )
        latency, latency_power, gpus = column("link_latency_s"), column("link_latency_power"), of("gpus", 2.0)
        return lambda moves, slowdown, calls: Reach(
            1.0,
            np.minimum(1.0, share(moves)) / slowdown * (2 / gpus) ** share_power(moves),
            latency(moves) * slowdown * (gpus / 2) ** latency_power(moves),
        )


def _array(values: Sequence[float]) -> Vector:
    return np.array(values, dtype=float)
