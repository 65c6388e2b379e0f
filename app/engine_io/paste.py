"""A start-up log or a launch command that was pasted: what it says, and the scenario that it stands for.

The text itself goes no further than this: what comes out are numbers, ids of the catalog and words of our own.

What was read of a pasted text, and how a scenario is launched, as JSON.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from app.calc.memory.logged import Line
from app.catalog.catalog import Catalog
from app.engine_io.launch.carried import merge
from app.engine_io.launch.command import read_command
from app.engine_io.launch.findings import CommandError, CommandReading, Variant
from app.engine_io.logs.findings import LogError, LogReading
from app.engine_io.logs.reader import read_log
from app.scenario.document import comparison_line
from app.scenario.parts import Part
from app.scenario.refusal import Refusal, ScenarioError
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario

MOST_TEXT = 1_048_576
Kind = Literal["log", "command"]
_LAUNCHER = re.compile(
    r"vllm serve|-m vllm|-m sglang|sglang serve|trtllm-serve|llama-server|docker run|podman run"
    r"|apiVersion:|modelArtifacts:"
)


class PasteError(ValueError):
    """The text is nothing that is read here; the message is a sentence for the person who pasted it."""


class PasteRequest(Part):
    """A text to be read, and what is chosen where it says nothing."""

    text: Annotated[str, Field(min_length=1, max_length=MOST_TEXT, description="A start-up log or launch command.")]
    kind: Kind | None = Field(None, description="What it is; left out, the text decides.")
    scenario: dict[str, Any] | None = Field(
        None, description="Fields of the scenario that win over the text, such as the card it does not name."
    )


@dataclass(frozen=True, slots=True)
class Pasted:
    """What was read. `scenario` is None where `refusals` say what is missing or does not go together."""

    kind: Kind
    reading: LogReading | CommandReading
    document: dict[str, Any]
    scenario: Scenario | None
    refusals: tuple[Refusal, ...]


def read_paste(asked: PasteRequest, catalog: Catalog) -> Pasted:
    """The text as a scenario.

    Raises:
        PasteError: it is neither a log nor a command that is read here, or contradicts itself.
    """
    reading = _read(asked, catalog)
    kind: Kind = "log" if isinstance(reading, LogReading) else "command"
    document = merge(reading.document, asked.scenario or {})
    if kind == "log":  # it says nothing of requests: what is asked is how many fit
        document.setdefault("workload", {"concurrency": None})
    scenario, refusals = _scenario(document, catalog)
    return Pasted(kind, reading, document, scenario, refusals)


def _read(asked: PasteRequest, catalog: Catalog) -> LogReading | CommandReading:
    """As what it is said to be; else as a log, which may show its command, and then as a command."""
    if asked.kind == "command":
        return _as_command(asked.text, catalog)
    try:
        return read_log(asked.text, catalog)
    except LogError as error:
        refused = PasteError(str(error))
    if asked.kind is None:
        try:
            return _as_command(asked.text, catalog)
        except PasteError as error:
            if _LAUNCHER.search(asked.text):
                refused = error
    raise refused


def _as_command(text: str, catalog: Catalog) -> CommandReading:
    try:
        return read_command(text, catalog)
    except CommandError as error:
        raise PasteError(str(error)) from error


def _scenario(document: dict[str, Any], catalog: Catalog) -> tuple[Scenario | None, tuple[Refusal, ...]]:
    """The scenario, if the document makes one that can be computed."""
    missing = []
    if _lacks(document.get("model"), ("id", "config", "architecture")):
        missing.append(Refusal("model.id", "The text does not name a model of the catalog; choose it."))
    if _lacks(document.get("hardware"), ("id", "custom")):
        missing.append(Refusal("hardware.id", "The text does not name the card; choose it."))
    if missing:
        return None, tuple(missing)
    try:
        scenario = Scenario.model_validate(document)
        return resolve(scenario, catalog).scenario, ()
    except ScenarioError as error:
        return None, error.refusals
    except ValidationError as error:
        places = [(".".join(str(part) for part in one["loc"]), str(one["msg"])) for one in error.errors()[:20]]
        return None, tuple(Refusal(path, message) for path, message in places)


def _lacks(part: object, keys: tuple[str, ...]) -> bool:
    """True where a part of the scenario names nothing; what is no object at all is for the validation to refuse."""
    return part is None or (isinstance(part, dict) and not any(part.get(key) for key in keys))


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
