"""A start-up log or a launch command that was pasted: what it says, and the scenario that it stands for.

The text itself goes no further than this: what comes out are numbers, ids of the catalog and words of our own.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from app.catalog.catalog import Catalog
from app.launch.carried import merge
from app.launch.command import read_command
from app.launch.findings import CommandError, CommandReading
from app.refusal import Refusal, ScenarioError
from app.resolve import resolve
from app.scenario import Scenario
from app.scenario_parts import Part
from app.startup_log.findings import LogError, LogReading
from app.startup_log.reader import read_log

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
