"""What was read of a pasted text, and how a scenario is launched, as JSON."""

from collections.abc import Iterable
from typing import Any

from app.calc.comparison import Line
from app.launch.findings import CommandReading, Variant
from app.memory_document import comparison_line
from app.paste import Pasted
from app.startup_log.findings import LogReading


def paste_document(pasted: Pasted, comparison: Iterable[Line]) -> dict[str, Any]:
    """The reading, the scenario it makes, and what keeps it from making one."""
    reading = pasted.reading
    told = _of_log(reading) if isinstance(reading, LogReading) else _of_command(reading)
    return {
        "kind": pasted.kind,
        "engine": reading.engine,
        **told,
        "document": pasted.document,
        "scenario": None if pasted.scenario is None else pasted.scenario.document(),
        "problems": [{"path": refusal.path, "message": refusal.message} for refusal in pasted.refusals],
        "comparison": [comparison_line(line) for line in comparison],
    }


def _of_log(reading: LogReading) -> dict[str, Any]:
    return {
        "release": reading.release,
        "figures": [
            {
                "id": figure.id,
                "label": figure.label,
                "value": figure.value,
                "unit": figure.unit.value,
                "rank": figure.rank,
                "printed": figure.printed,
            }
            for figure in reading.figures
        ],
        "told": [{"path": one.path, "label": one.label, "value": one.value} for one in reading.told],
        "missing": [one.path for one in reading.missing],
        "accelerator_candidates": list(reading.accelerator_candidates),
        "notes": list(reading.notes),
    }


def _of_command(reading: CommandReading) -> dict[str, Any]:
    return {
        "variant": reading.variant,
        "told": [{"path": one.path, "flag": one.flag, "value": one.value} for one in reading.told],
        "unread": [{"flag": one.flag, "reason": one.reason.value} for one in reading.unread],
        "missing": list(reading.missing),
    }


def launch_document(variants: Iterable[Variant], why_none: str | None) -> dict[str, Any]:
    """Every text that launches a scenario; none, and why, for an engine that has no command."""
    return {
        "variants": [
            {
                "id": variant.id,
                "label": variant.label,
                "language": variant.language,
                "text": variant.text,
                "release": variant.release,
                "notes": list(variant.notes),
            }
            for variant in variants
        ],
        "note": why_none,
    }
