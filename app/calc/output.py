"""What is said of a number of the product: its path, label, unit and meaning. The numbers are in `app.calc.outputs`."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from app.calc.memory.engines.parts import Interval
from app.calc.quantity import Unit
from app.calc.time.serving import Estimate

if TYPE_CHECKING:
    from app.calc.evaluate import Evaluation


class Scope(StrEnum):
    """Whose number it is."""

    GPU = "per GPU"
    USER = "per user"
    DEPLOYMENT = "all GPUs"


class Better(StrEnum):
    """Which way a number is better."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


class Form(StrEnum):
    """What stands at the path in the JSON document."""

    NUMBER = "number"
    OPTIONAL = "number or null"
    COUNT = "whole number"
    ESTIMATE = "ceiling, and low, mid and high of what is expected, null where nothing is"
    EXPECTED = "low, mid and high, null where nothing is expected"
    INTERVAL = "low, mid and high"


class Face(StrEnum):
    """Where a number is shown beside the JSON document."""

    CARD = "card"
    LEVELS = "levels"
    COMPARE = "compare"


Found = float | int | Estimate | Interval | None


@dataclass(frozen=True, slots=True)
class Output:
    """One number. `of` reads it from an evaluation, None where the scenario has none; `help` defines it."""

    path: str
    label: str
    unit: Unit
    of: "Callable[[Evaluation], Found]"
    scope: Scope = Scope.DEPLOYMENT
    better: Better = Better.NEITHER
    help: str = ""
    on: frozenset[Face] = frozenset()
    form: Form = Form.NUMBER

    @property
    def key(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]


def plain(found: Found) -> Any:
    """A number as it is, an estimate or an interval as a table of its sides."""
    match found:
        case Estimate():
            return {"ceiling": found.ceiling, "low": found.low, "mid": found.mid, "high": found.high}
        case Interval():
            return {"low": found.low, "mid": found.mid, "high": found.high}
    return found
