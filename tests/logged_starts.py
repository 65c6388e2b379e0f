"""Start-up logs as data (`tests/data/startup_logs`), and what our rules say to each.

A log states flags in `scenario` and what the engine printed in `logged`; what it leaves open is named in `unknown` and
left to the engine's defaults. `exception`: why the pool does not give the printed number by our rules. `unpredictable`:
why flags alone cannot give the pool. `shape_only`: the model is not named, only its shape is known.
"""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from app.calc.memory.capacity import Memory, memory
from app.calc.memory.engines.paged_pool import BlockRoom
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario
from tests.factories import shipped_catalog

FOLDER = Path(__file__).parent / "data" / "startup_logs"
GIB = 2**30
HALF_A_HUNDREDTH = 0.005
"""Sizes are printed to 0.01 GiB."""
VLLM_BY_DATE = (
    ("2023", "0.2.5"),
    ("2024-07", "0.5.3"),
    ("2024-09", "0.6.6"),
    ("2025-02", "0.7.3"),
    ("2025-03-18", "0.8.5"),
    ("2025-06", "0.9.2"),
    ("2025-07-24", "0.10.2"),
    ("2025-10", "0.11.0"),
    ("2025-12", "0.12.0"),
    ("2026-02", "0.16.0"),
    ("2026-03-11", "0.17.1"),
    ("2026-04", "0.19.0"),
    ("2026-05-10", "0.20.2"),
    ("2026-05-21", "0.21.0"),
    ("2026-06", "0.22.0"),
    ("2026-07", "0.24.0"),
    ("2026-08", "0.25.1"),
    ("2026-09", "0.29.0"),
)
"""The release that a log of that day most likely is of, where it states none."""
LAST_V0, FIRST_V1 = "0.7.3", "0.8.5"
"""Releases 0.8 and 0.9 have both engines: the rules of V0 are those of 0.7."""
UNSTATED_CARD = {"name": "A card that is not named", "bandwidth_gb_per_s": 1000.0, "dense_tflops": {"bf16": 100.0}}


@dataclass(frozen=True)
class Log:
    """One start of an engine."""

    id: str
    set: str
    source: str
    engine: str
    grade: str
    scenario: Mapping[str, Any]
    logged: Mapping[str, float]
    date: str = ""
    release: str | None = None
    generation: str | None = None
    model: str = ""
    card: str = ""
    remark: str = ""
    exception: str | None = None
    unpredictable: str | None = None
    shape_only: bool = False
    unknown: Sequence[str] = ()

    @property
    def version(self) -> str | None:
        """The release for our rules: as stated, or by the day of the log."""
        if self.engine != "vllm":
            return self.release
        stated = self.release if self.release and re.match(r"[0-9]", self.release) else None
        if stated is None and self.date:
            stated = [release for day, release in VLLM_BY_DATE if day <= self.date][-1]
        number = tuple(int(part) for part in re.findall(r"[0-9]+", stated or "")[:2])
        if self.generation == "V0" and (not number or number >= (0, 8)):
            return LAST_V0
        return FIRST_V1 if self.generation == "V1" and number and number < (0, 8) else stated

    @property
    def model_known(self) -> bool:
        """True where the scenario has a model, by name or by shape."""
        return "model" in self.scenario

    @property
    def printed(self) -> tuple[str, int] | None:
        """Blocks, or else tokens, as printed."""
        for name in ("blocks", "tokens"):
            if name in self.logged:
                return name, int(self.logged[name])
        return None


@cache
def logs() -> tuple[Log, ...]:
    """All of them, file after file."""
    return tuple(_read())


def _read() -> Iterator[Log]:
    for file in sorted(FOLDER.glob("*.toml")):
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        for row in document["log"]:
            yield Log(set=document["set"], **row)


def divided(log: Log, pool_gib: float | None = None) -> Memory:
    """The memory of the log's start by our rules, its pool given or predicted."""
    engine = {**log.scenario["engine"], "version": log.version}
    hardware = log.scenario.get("hardware")
    seen = log.logged.get("seen_gib")
    if hardware is None:
        gib = seen or 100_000.0
        hardware = {"custom": UNSTATED_CARD | {"memory_gb": gib * GIB / 1e9, "memory_reported_mib": round(gib * 1024)}}
        if seen is not None:
            engine["total_memory_bytes"] = seen * GIB
    if pool_gib is not None:
        # Beside weights of no size: a pool that was logged beside the true ones is not to be cut by ours.
        engine |= {"kv_pool_bytes": pool_gib * GIB, "weights_bytes": 0.0}
    document = {**log.scenario, "hardware": hardware, "engine": engine, "workload": {"concurrency": 1}}
    return memory(resolve(Scenario.model_validate(document), shipped_catalog()).deployment)


def alone_on_any_card(log: Log) -> Memory:
    """The memory of the whole model on one card that holds anything."""
    hardware = {"custom": UNSTATED_CARD | {"memory_gb": 1e6}}
    engine = {**log.scenario["engine"], "version": log.version}
    kept = {key: log.scenario[key] for key in ("model", "precision") if key in log.scenario}
    document = {**kept, "hardware": hardware, "engine": engine, "workload": {"concurrency": 1}}
    return memory(resolve(Scenario.model_validate(document), shipped_catalog()).deployment)


def printed_by_rules(log: Log, pool_gib: float) -> int:
    """What the engine would print of a pool, in the log's own unit."""
    found, name = divided(log, pool_gib), (log.printed or ("tokens", 0))[0]
    if name == "blocks":
        plan = found.tightest.plan
        assert isinstance(plan, BlockRoom)
        return plan.blocks(pool_gib * GIB)
    return found.kv_pool_tokens


@dataclass(frozen=True)
class Given:
    """What our rules give for the printed pool, and for its rounding down and up."""

    low: int
    mid: int
    high: int
    printed: int

    @property
    def error(self) -> float:
        """Relative, for the pool as printed."""
        return abs(self.mid / self.printed - 1)

    @property
    def holds(self) -> bool:
        """Some pool that rounds to the printed one gives the printed number."""
        return self.low <= self.printed <= self.high


@cache
def from_pool(log_id: str) -> Given:
    """Criterion 1 for one log."""
    log = by_id(log_id)
    assert log.printed is not None
    pool = log.logged["pool_gib"]
    low, mid, high = (printed_by_rules(log, pool + step) for step in (-HALF_A_HUNDREDTH, 0.0, HALF_A_HUNDREDTH))
    return Given(low, mid, high, log.printed[1])


@dataclass(frozen=True)
class Predicted:
    """Pool in GiB (or tokens where the log prints no pool): low, most likely, high; and as logged."""

    low: float
    mid: float
    high: float
    logged: float

    @property
    def error(self) -> float:
        """Relative."""
        return abs(max(0.0, self.mid) / self.logged - 1)

    @property
    def holds(self) -> bool:
        """The interval has the truth in it, to what the log rounds."""
        slack = HALF_A_HUNDREDTH if math.isfinite(self.logged) and self.logged < 10_000 else 0.0
        return self.low - slack <= self.logged <= self.high + slack


@cache
def from_flags(log_id: str) -> Predicted:
    """Criterion 2 for one log."""
    log = by_id(log_id)
    found = divided(log)
    if "pool_gib" in log.logged:
        sides = found.tightest.pool
        return Predicted(sides.low / GIB, sides.mid / GIB, sides.high / GIB, log.logged["pool_gib"])
    low, high = found.kv_pool_tokens_interval
    return Predicted(low, found.kv_pool_tokens, high, log.logged["tokens"])


@cache
def _index() -> Mapping[str, Log]:
    return {log.id: log for log in logs()}


def by_id(log_id: str) -> Log:
    """The log of that id."""
    return _index()[log_id]


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
