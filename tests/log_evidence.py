"""What the logs say to each law of overheads: measured values beside the interval of our rules, by engine and part.

A log counts where it says something to the part: `activation` and `weights` need its model and its card (or the memory
that it prints) besides; what is before loading needs the card and the split. Logs of forks, of development builds and
of memory that other programs share count nowhere but in `sharing`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType

from app.calc.memory.engines.parts import Part
from app.calc.memory.engines.rules import Law, OverheadLaws
from app.catalog.engines import load_engines
from tests.factories import shipped_catalog
from tests.logged_starts import GIB, Log, divided, logs

FORGOTTEN = ("shared memory", "fork", "development build")
ROUNDING_GIB = 0.006
UNIFIED_SEEN_GIB = 121.69
"""What an engine sees of a GB10."""


@dataclass(frozen=True)
class Measured:
    """One log's value in GiB, and the interval of our rules."""

    log: Log
    value: float
    low: float
    mid: float
    high: float

    @property
    def holds(self) -> bool:
        """Within the interval, to what the log rounds."""
        return self.low - ROUNDING_GIB <= self.value <= self.high + ROUNDING_GIB


def measured(engine: str, part: str) -> list[Measured]:
    """Every log of `engine` that says something to the law of that name."""
    return list(_PARTS[part](engine))


def laws_of(engine: str) -> OverheadLaws:
    """The laws of an engine as the file has them."""
    laws = load_engines()[engine].laws
    assert laws is not None
    return laws


def _of(engine: str) -> Iterator[Log]:
    return (log for log in logs() if log.engine == engine and log.unpredictable not in FORGOTTEN)


def _against(law: Law, log: Log, value: float) -> Measured:
    return Measured(log, value, *(side / GIB for side in law.interval(gpus=gpus(log)).sides))


def _described(engine: str, key: str) -> Iterator[Log]:
    for log in _of(engine):
        placed = "card" not in log.unknown or "seen_gib" in log.logged
        if log.scenario.get("model") and key in log.logged and placed and "tensor" not in log.unknown:
            yield log


def _activation(engine: str) -> Iterator[Measured]:
    key = "compute_gib" if engine == "llama.cpp" else "activation_gib"
    for log in _described(engine, key):
        if log.unpredictable is None:
            found = next(o.bytes for o in divided(log).overheads if o.part is Part.ACTIVATION)
            yield Measured(log, log.logged[key], *(side / GIB for side in found.sides))


def _weights(engine: str) -> Iterator[Measured]:
    """Not of llama.cpp: its files quantize tensor by tensor, which no scenario says."""
    for log in _described(engine, "weights_gib"):
        stated = not log.shape_only and "weights" not in log.unknown and log.unpredictable is None
        if stated and engine != "llama.cpp":
            sides = (side / GIB for side in divided(log).tightest.weights.sides)
            yield Measured(log, log.logged["weights_gib"], *sides)


def gpus(log: Log) -> int:
    """GPUs of the log's replica."""
    sizes = log.scenario.get("parallelism", {})
    return int(sizes.get("tensor", 1) * sizes.get("pipeline", 1) * sizes.get("data", 1))


def is_bus_linked(log: Log) -> bool:
    """True where the card is known and its link is no fabric."""
    card = shipped_catalog().accelerators.get(log.scenario.get("hardware", {}).get("id", ""))
    return card is not None and card.accelerator.is_bus_linked


def _alone(engine: str) -> Iterator[Measured]:
    return (_against(laws_of(engine).alone, *pair) for pair in _before_loading(engine) if gpus(pair[0]) == 1)


def _with_peers(engine: str) -> Iterator[Measured]:
    laws = laws_of(engine)
    for log, value in _before_loading(engine):
        if gpus(log) > 1 and not (laws.over_bus and is_bus_linked(log)):
            yield _against(laws.with_peers, log, value)


def _over_bus(engine: str) -> Iterator[Measured]:
    law = laws_of(engine).over_bus
    for log, value in _before_loading(engine):
        if law is not None and gpus(log) > 1 and is_bus_linked(log):
            yield _against(law, log, value)


def _before_loading(engine: str) -> Iterator[tuple[Log, float]]:
    """As printed; for SGLang what the card has less what was free before loading, where the card is named."""
    for log in _of(engine):
        if "tensor" in log.unknown:
            continue
        if "non_framework_gib" in log.logged:
            yield log, log.logged["non_framework_gib"]
        elif engine == "sglang" and (free := _free_before(log)) and (seen := _seen(log)) and seen != UNIFIED_SEEN_GIB:
            yield log, seen - free


def _free_before(log: Log) -> float | None:
    if "free_before_gib" in log.logged:
        return log.logged["free_before_gib"]
    after, weights = log.logged.get("free_after_gib"), log.logged.get("weights_gib")
    return after + weights if after is not None and weights is not None else None


def _seen(log: Log) -> float | None:
    card = shipped_catalog().accelerators.get(log.scenario.get("hardware", {}).get("id", ""))
    seen = card.accelerator.memory_seen_bytes if card else None
    return round(seen / GIB, 2) if seen else None


def _sharing(engine: str) -> Iterator[Measured]:
    """On a GB10: all that is taken before loading."""
    law = laws_of(engine).sharing
    for log in logs():
        free, card = _free_before(log), log.scenario.get("hardware", {}).get("id")
        if law is not None and log.engine == engine and free and card == "dgx-spark-gb10":
            yield _against(law, log, UNIFIED_SEEN_GIB - free)


def _graphs(engine: str) -> Iterator[Measured]:
    """What capturing took, where it took anything: a table of one author has negative changes."""
    law = laws_of(engine).graphs
    for log in _of(engine):
        eager = log.scenario["engine"].get("enforce_eager", False)
        if law is not None and not eager and log.logged.get("graphs_gib", 0.0) > 0:
            yield _against(law, log, log.logged["graphs_gib"])


_PARTS: MappingProxyType[str, Callable[[str], Iterator[Measured]]] = MappingProxyType(
    {
        "activation": _activation,
        "alone": _alone,
        "with_peers": _with_peers,
        "over_bus": _over_bus,
        "sharing": _sharing,
        "graphs": _graphs,
        "weights": _weights,
    }
)
PARTS = tuple(_PARTS)
ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp")
