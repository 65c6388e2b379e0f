"""What the paste page shows of a reading: what was told, what was left, and logged beside predicted."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.answer import Answer
from app.calc.comparison import Line
from app.calc.notation import quantity, significant
from app.catalog.catalog import Catalog
from app.launch.forms import CommandReading
from app.pages.answer_view import AnswerView, answer_view
from app.paste import Pasted
from app.startup_log.reading import LogReading

DIGITS = 4


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the comparison, written out."""

    label: str
    logged: str
    predicted: str
    interval: str
    difference: str
    is_inside: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ToldRow:
    """A field that the text fills: who said it, which field, its value."""

    source: str
    path: str
    value: str


class PasteView:
    """Everything the template reads of one pasted text."""

    def __init__(self, pasted: Pasted, answered: Answer | None, catalog: Catalog) -> None:
        self.pasted, self.answer = pasted, answered
        self._catalog = catalog
        self.answer_view: AnswerView | None = answer_view(answered, binary=True) if answered else None

    @property
    def is_log(self) -> bool:
        """A log, and not a command."""
        return isinstance(self.pasted.reading, LogReading)

    @property
    def title(self) -> str:
        """What it is, in a line."""
        reading = self.pasted.reading
        engine = self._catalog.engines[reading.engine].name if reading.engine in self._catalog.engines else ""
        if isinstance(reading, LogReading):
            return f"A start-up log of {reading.engine_name}{f' {reading.release}' if reading.release else ''}"
        return f"A launch of {engine or reading.engine}, {reading.variant}"

    @property
    def told(self) -> Sequence[ToldRow]:
        """Fields of the scenario, as they were told."""
        reading = self.pasted.reading
        if isinstance(reading, CommandReading):
            return [ToldRow(one.flag, one.path, _value(one.path, one.value)) for one in reading.told]
        return [ToldRow(one.label, one.path, _value(one.path, one.value)) for one in reading.told]

    @property
    def left(self) -> Sequence[tuple[str, str]]:
        """Flags that set nothing, each with the reason."""
        reading = self.pasted.reading
        return [(one.flag, one.reason.value) for one in reading.unread] if isinstance(reading, CommandReading) else []

    @property
    def notes(self) -> Sequence[str]:
        """What contradicts itself in a log."""
        reading = self.pasted.reading
        return reading.notes if isinstance(reading, LogReading) else ()

    @property
    def candidates(self) -> Sequence[tuple[str, str]]:
        """Cards with about the memory that the log says, by id and name."""
        reading = self.pasted.reading
        if not isinstance(reading, LogReading):
            return []
        records = self._catalog.accelerators
        return [(id_, records[id_].name) for id_ in reading.accelerator_candidates if id_ in records][:8]

    @property
    def rows(self) -> Sequence[Row]:
        """Logged beside predicted."""
        return [comparison_row(line) for line in self.answer.evaluation.comparison] if self.answer else []


def comparison_row(line: Line) -> Row:
    """A line in words and figures; sizes in GiB, as engines print them."""

    def written(value: float) -> str:
        if line.unit == "B":
            return f"{value / 2**30:,.2f} GiB"
        if line.unit:
            return f"{value:,.0f} {line.unit}"
        return significant(value, DIGITS)

    sides = line.predicted
    interval = "" if sides.is_exact else f"{written(sides.low)} to {written(sides.high)}"
    difference = "" if line.difference is None else f"{line.difference * 100:+.2f} %"
    return Row(line.label, written(line.logged), written(sides.mid), interval, difference, line.is_inside, line.reason)


def _value(path: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) and path.endswith("_bytes"):
        return quantity(float(value), "B", DIGITS, binary=True)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
