"""What the paste page shows of a reading: what was told, what was left, and the answer that it makes."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.answer import Answer
from app.calc.notation import quantity
from app.catalog.catalog import Catalog
from app.launch.findings import CommandReading
from app.pages.answer_view import AnswerView, answer_view
from app.paste import Pasted
from app.startup_log.findings import LogReading

DIGITS = 4


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


def _value(path: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) and path.endswith("_bytes"):
        return quantity(float(value), "B", DIGITS, binary=True)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
