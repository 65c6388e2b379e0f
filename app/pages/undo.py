"""One change taken back without any memory of it: the address of a changed view carries what the change replaced."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from app.scenario_query import BY_NAME, Kind, QueryField
from app.web import urls

UNDO = "undo"
MOST_CHARACTERS = 400
MOST_FIELDS = 20


@dataclass(frozen=True, slots=True)
class Undo:
    """A link back, and what it brings back in words."""

    href: str
    words: str


def replaced(before: urls.Items, after: urls.Items) -> str:
    """What `after` replaced, as a query string of its own; what it added is brought back as empty."""
    was, now = dict(before), dict(after)
    changed = [(name, value) for name, value in before if now.get(name) != value]
    return urls.query_string([*changed, *((name, "") for name, _ in after if name not in was)])


def undo_of(text: str | None, items: urls.Items) -> Undo | None:
    """The way back from `items`; None where the text names nothing that could be brought back."""
    if not text or len(text) > MOST_CHARACTERS:
        return None
    try:
        read = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        return None
    back = {name: value for name, value in read if name in BY_NAME}
    if not back or len(back) != len(read):
        return None
    kept = [(name, back.get(name, value)) for name, value in items]
    added = [(name, value) for name, value in back.items() if name not in dict(items)]
    return Undo(urls.workbench([*kept, *added]), _words(list(back.items())))


def _words(back: Sequence[tuple[str, str]]) -> str:
    """What comes back; of a split the total of GPUs goes without saying, and so does what a part left out has lost."""
    told = [(BY_NAME[name], value) for name, value in back if value or BY_NAME[name].ui.empty]
    told = [pair for pair in told if pair[0].ui.group != "measured"]
    if len(told) > 1:
        told = [pair for pair in told if pair[0].name != "count"]
    return ", ".join(f"{field.label}: {_value(field, value)}" for field, value in told) or "what was measured"


def _value(field: QueryField, value: str) -> str:
    if not value:
        return field.ui.empty
    if field.kind is Kind.JSON:
        return "as given"
    if field.kind is Kind.FLAG:
        value = "1" if value in ("1", "true") else "0"
    words = dict(field.ui.choices).get(value)
    if words is None and field.kind is Kind.FLAG:
        return "on" if value == "1" else "off"
    return words or (value if field.kind is Kind.BYTES else field.with_unit(value))
