"""The division of memory as JSON: what is assumed, what the log prints, each stage, logged beside predicted."""

from typing import Any

from app.calc.comparison import Line
from app.calc.engines.parts import Overhead
from app.calc.memory import Memory
from app.calc.output import plain
from app.calc.rank_memory import RankMemory


def memory_lists(held: Memory) -> dict[str, Any]:
    """What stands beside the numbers of `memory`; of the tightest GPU unless a list of all stages says otherwise."""
    return {
        "overheads": [_overhead(overhead) for overhead in held.overheads],
        "log_lines": [
            {"id": line.id, "label": line.label, "value": line.value, "unit": line.unit, "text": line.text}
            for line in held.log_lines
        ],
        "stages": [_stage(stage, stage is held.tightest) for stage in held.ranks],
    }


def _overhead(overhead: Overhead) -> dict[str, Any]:
    return {
        "part": overhead.part.value,
        "bytes": plain(overhead.bytes),
        "given": overhead.is_given,
        "charged": overhead.is_charged,
        "evidence": overhead.evidence,
    }


def _stage(rank: RankMemory, is_tightest: bool) -> dict[str, Any]:
    return {
        "stage": rank.stage,
        "layers": rank.layers,
        "tightest": is_tightest,
        "weights_bytes": rank.weights.mid,
        "kv_pool_bytes": rank.pool.mid,
        "overhead_bytes": sum(overhead.bytes.mid for overhead in rank.overheads),
        "block_bytes": rank.plan.unit_bytes,
    }


def comparison_line(line: Line) -> dict[str, Any]:
    """One figure as logged and as predicted."""
    return {
        "id": line.id,
        "label": line.label,
        "logged": line.logged,
        "predicted": plain(line.predicted),
        "unit": line.unit,
        "difference": line.difference,
        "inside": line.is_inside,
        "reason": line.reason,
    }
