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
from app.launch.forms import CommandError, CommandReading
from app.refusal import Refusal, ScenarioError
from app.resolve import resolve
from app.scenario import Part, Scenario
from app.startup_log.reader import read_log
from app.startup_log.reading import LogError, LogReading

MOST_TEXT = 1_048_576
Kind = Literal["log", "command"]
_LAUNCHERS = re.compile(
    r"^\s*(?:[\w.-]+:\s*)?(?:\$\s*)?(?:vllm serve|python3? -m (?:vllm|sglang)|trtllm-serve|llama-server|docker run"
    r"|podman run|apiVersion:|kind:|decode:|modelArtifacts:|# Tokenroof:)",
    re.MULTILINE,
)
_SAMPLE = 65_536


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
    kind = asked.kind or _kind_of(asked.text)
    reading: LogReading | CommandReading
    try:
        reading = read_log(asked.text, catalog) if kind == "log" else read_command(asked.text, catalog)
    except (LogError, CommandError) as error:
        raise PasteError(str(error)) from error
    document = merge(reading.document, asked.scenario or {})
    scenario, refusals = _scenario(document, catalog)
    return Pasted(kind, reading, document, scenario, refusals)


def _kind_of(text: str) -> Kind:
    """A command begins with a launcher or a manifest's first keys; anything else is taken for a log."""
    start = text[:_SAMPLE]
    found = _LAUNCHERS.search(start)
    if found is None:
        return "log"
    # A log may show the command that it belongs to; lines before and after are then its own.
    return "command" if start[: found.start()].count("\n") < 20 and not _LOGGED.search(start) else "log"


_LOGGED = re.compile(
    r"\b(?:INFO|WARNING|ERROR|DEBUG) \d\d-\d\d|\[20\d\d-\d\d-\d\d|\bKV cache|llama_context:|load_tensors:"
)


def _scenario(document: dict[str, Any], catalog: Catalog) -> tuple[Scenario | None, tuple[Refusal, ...]]:
    """The scenario, if the document makes one that can be computed."""
    model, hardware = document.get("model") or {}, document.get("hardware") or {}
    missing = []
    if not any(model.get(key) for key in ("id", "config", "architecture")):
        missing.append(Refusal("model.id", "The text does not name a model of the catalog; choose it."))
    if not any(hardware.get(key) for key in ("id", "custom")):
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
