"""One change taken back without any memory of it: the address of a changed view carries what the change replaced."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from app.scenario_query import BY_NAME
from app.web import urls

UNDO = "undo"
MOST_CHARACTERS = 400
MOST_FIELDS = 20
_WORDS = {
    "hw": "accelerator",
    "count": "GPUs",
    "w": "weights",
    "kv": "cache",
    "compute": "arithmetic",
    "tp": "TP",
    "draft_tokens": "guesses",
    "method": "who guesses",
    "accept": "acceptance",
    "accept_len": "tokens a step",
    "pd_hw": "prefill pool",
    "pd_x": "its instances",
    "hit": "prefix hits",
    "shared": "shared prefix",
    "reserved": "reserved room",
    "static": "batches",
    "chunked": "chunked prefill",
    "attention": "attention",
    "pp": "PP",
    "dcp": "DCP",
    "util": "share",
    "max_seqs": "max_num_seqs",
    "max_batched": "max_num_batched_tokens",
    "eager": "enforce_eager",
    "prompt": "prompt",
    "batch": "users",
}
_FLAGS = ("eager", "chunked", "static")
_NONE = ("draft_tokens", "pd_hw", "reserved")


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
    """What comes back; of a split the total of GPUs goes without saying."""
    told = [(name, value) for name, value in back if name in _WORDS]
    if len(told) > 1:
        told = [pair for pair in told if pair[0] != "count"]
    return ", ".join(f"{_WORDS[name]} {_value(name, value)}" for name, value in told) or "what was measured"


def _value(name: str, value: str) -> str:
    if name in _FLAGS:
        return "on" if value in ("1", "true") else "off"
    if name in _NONE:
        return value or "none"
    if name == "attention":
        return value or "of its own"
    return value or "left open"
