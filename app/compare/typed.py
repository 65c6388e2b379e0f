"""What a person pastes to name a plan: a workbench query or address, or a saved link. Only parsed, never fetched."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl

from app.refusal import Refusal, ScenarioError
from app.scenario_query import BY_NAME
from app.store.links import parse_token
from app.web.query import MOST_ITEMS

MOST_CHARACTERS = 32_000
_LINK = re.compile(r"(?:.*/)?(?:c|configurations)/([^/#]+)/?(?:#.*)?", re.DOTALL)
_UNREAD = (
    "Paste the address of a workbench page or of a saved link, or what follows the “?” of one; this text is neither."
)
_COMPARISON = "This is the address of a comparison: paste one scenario, or one saved link."


@dataclass(frozen=True, slots=True)
class Typed:
    """A text as it was read: the slug of a saved link, or the items of a scenario's query."""

    slug: str | None = None
    items: tuple[tuple[str, str], ...] = ()


def read_typed(text: str) -> Typed:
    """What `text` names, on whatever host its address is.

    Raises:
        ScenarioError: it is neither a scenario nor a saved link; the path of the refusal is empty.
    """
    trimmed = text.strip()
    if len(trimmed) > MOST_CHARACTERS:
        raise _refused("is too long.")
    if parse_token(trimmed) is not None:
        return Typed(slug=trimmed)
    head, _, query = trimmed.partition("?")
    if "=" in head or "&" in head:  # no address: the query alone, which may hold a question mark
        head, query = "", trimmed
    link = _LINK.fullmatch(head)
    if link is not None:
        return Typed(slug=link[1])
    return Typed(items=_items(query.partition("#")[0]))


def _items(query: str) -> tuple[tuple[str, str], ...]:
    try:
        items = tuple(parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_ITEMS))
    except ValueError as error:
        raise _refused(f"has more than {MOST_ITEMS} query parameters.") from error
    names = {name for name, _ in items}
    if "s" in names:
        raise _refused(_COMPARISON)
    if not names & set(BY_NAME):
        raise _refused(_UNREAD)
    return items


def _refused(message: str) -> ScenarioError:
    return ScenarioError([Refusal("", message)])
