"""Which logs a criterion takes, by rules that do not look at the error, and how far off our numbers are."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType

from tests.logged_starts import Log, from_flags, from_pool, logs, quantile

SETS = ("kv-logs", "new")
UNPREDICTABLE = MappingProxyType(
    {
        "shared memory": "other programs hold a part of the same memory",
        "fork": "not the engine whose rules these are",
        "development build": "between releases",
        "release before a fix of its memory count": "known to have counted wrongly",
        "mixed checkpoint": "weights in several formats that neither the log nor its text names",
        "adapters of unknown size": "LoRA slots lie between weights and pool",
        "vision tower not described": "the catalog has the language part only",
        "the smallest rank is not shown": "the memory line is of another GPU than the token line",
        "unlike cards": "two kinds of card in one replica",
        "card not named": "only its size is told, to a digit or two",
        "rounded by its author": "no line of the log",
        "pool capped by a flag": "a limit of tokens was set",
        "its kernel multiplies the fraction": "a share that the flag does not say",
        "flash attention off": "llama.cpp: the scores of all tokens lie in the compute buffer",
        "flash attention not stated": "llama.cpp: the same",
        "experts on the host": "llama.cpp: the card's compute buffer stages them",
        "part of the layers on the host": "llama.cpp: the compute buffer is of the others",
        "another backend": "llama.cpp: its buffers lie elsewhere",
    }
)
"""Why flags cannot give the pool (or llama.cpp's compute buffer), with what is meant."""
PARTS_OF_A_LOG = ("activation_gib", "non_framework_gib", "compute_gib")


def takes_pool(log: Log) -> bool:
    """Criterion 1: the log prints a pool and what it holds, and says or shows which model it is."""
    return log.engine != "llama.cpp" and has_pool(log) and log.printed is not None and "model" in log.scenario


def has_pool(log: Log) -> bool:
    """A pool that holds something."""
    return log.logged.get("pool_gib", 0.0) > 0


def left_out(log: Log) -> str | None:
    """Criterion 2: why flags cannot give this pool; None where they can.

    In this order: it is not left over but asked for; there is nothing to compare with; what decides it is not stated;
    or it is unpredictable in principle, for a reason that the data name.
    """
    engine, unknown = log.scenario["engine"], set(log.unknown)
    if log.engine == "llama.cpp":
        return "the cache is asked for, not left over"
    if not has_pool(log) and ("pool_gib" in log.logged or "tokens" not in log.logged):
        return "no pool is logged, or none is left"
    if "model" in unknown or log.shape_only:
        return "model not named"
    if "card" in unknown and "seen_gib" not in log.logged:
        return "card not named, its memory not printed"
    if "tensor" in unknown:
        return "split not stated"
    if "memory_utilization" not in engine:
        return "utilization not stated"
    return log.unpredictable


@dataclass(frozen=True)
class Accuracy:
    """Relative errors of some logs."""

    n: int
    median: float
    p90: float
    coverage: float


def from_flags_accuracy(chosen: Iterable[Log]) -> Accuracy:
    """Of criterion 2; `coverage` is the share whose interval holds the truth."""
    found = [from_flags(log.id) for log in chosen]
    errors = [one.error for one in found]
    share = sum(one.holds for one in found) / len(found)
    return Accuracy(len(found), quantile(errors, 0.5), quantile(errors, 0.9), share)


def from_pool_accuracy(chosen: Iterable[Log]) -> Accuracy:
    """Of criterion 1; `coverage` is the share whose rounding holds the printed number."""
    found = [from_pool(log.id) for log in chosen]
    errors = [one.error for one in found]
    share = sum(one.holds for one in found) / len(found)
    return Accuracy(len(found), quantile(errors, 0.5), quantile(errors, 0.9), share)


def given(name: str | None = None, engine: str | None = None, *, exceptions: bool = False) -> list[Log]:
    """Logs of criterion 1."""
    return [log for log in _of(name, engine) if takes_pool(log) and (log.exception is not None) == exceptions]


def predictable(name: str | None = None, engine: str | None = None) -> list[Log]:
    """Logs of criterion 2."""
    return [log for log in _of(name, engine) if left_out(log) is None]


def prints_parts(log: Log) -> bool:
    """True where the log's own overheads are among those that the laws rest on."""
    return any(key in log.logged for key in PARTS_OF_A_LOG)


def _of(name: str | None, engine: str | None) -> Iterable[Log]:
    return (log for log in logs() if name in (None, log.set) and engine in (None, log.engine))
