"""Reads what a worker says, and believes only what can be."""

from typing import Final

from pydantic import TypeAdapter

from app.microbench.lines import Line
from app.microbench.outcome import Failure, Outcome, Progress

_LINE: Final = TypeAdapter(Line)


class GarbledLineError(ValueError):
    """The line is none that a worker writes."""


def said_in(line: bytes) -> Progress | Outcome | Failure:
    """What the line says.

    Raises:
        GarbledLineError: it is not one of ours, or says what cannot be; the error does not repeat it.
    """
    try:
        return _LINE.validate_json(line, strict=True).said
    except ValueError:
        raise GarbledLineError("This is no line of the worker.") from None
