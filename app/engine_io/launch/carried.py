"""The one comment line that carries what flags cannot say: fields of a scenario under their query names."""

from typing import Any
from urllib.parse import parse_qsl, urlencode

from app.calc.time.speculation import Method
from app.engine_io.launch.findings import CommandError, get
from app.scenario.query import FIELDS, MAX_CONFIG, MAX_VALUE, Kind, query_items, scenario_document
from app.scenario.refusal import ScenarioError
from app.scenario.scenario import Scenario

MARK = "# Tokenroof: "
MOST_LETTERS = 48_000
_OF_A_CUSTOM_MODEL = ("name", "config", "quantization", "read_as", "architecture")


def merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Both documents, field by field; where both have one, that of `above`."""
    merged = dict(below)
    for key, value in above.items():
        lower = merged.get(key)
        merged[key] = merge(lower, value) if isinstance(lower, dict) and isinstance(value, dict) else value
    return merged


def combined(
    inferred: dict[str, Any], comment: dict[str, Any], flags: dict[str, Any], guesser: Method | None = None
) -> dict[str, Any]:
    """One document: flags win over the comment, and the comment over what was inferred. `guesser` is who guesses by
    the flags, which do not always have a field for it."""
    below = merge(inferred, comment)
    if get(flags, "model.id") is not None and "model" in below:
        # Another model in the command: what was said of one's own goes.
        below = {**below, "model": {key: v for key, v in below["model"].items() if key not in _OF_A_CUSTOM_MODEL}}
    if get(flags, "techniques.speculative.draft.id") is not None and get(below, "techniques.speculative.draft"):
        below = merge(below, {"techniques": {"speculative": {"draft": None}}})
    document = _with_guesser(merge(below, flags), flags, guesser)
    if get(document, "techniques.speculative") and get(document, "techniques.speculative.draft_tokens") is None:
        document = merge(document, {"techniques": {"speculative": None}})
    return document


def _with_guesser(document: dict[str, Any], flags: dict[str, Any], guesser: Method | None) -> dict[str, Any]:
    """Without what the comment says of another guesser than that of the flags, or of more guesses than they ask for."""
    undone: dict[str, Any] = {}
    if guesser is not None and get(document, "techniques.speculative.method") not in (None, guesser):
        undone["method"] = None
    tokens, length = (get(document, f"techniques.speculative.{key}") for key in ("draft_tokens", "acceptance_length"))
    if get(flags, "techniques.speculative.draft_tokens") is not None and length is not None and length > tokens + 1:
        undone["acceptance_length"] = None
    return merge(document, {"techniques": {"speculative": undone}}) if undone else document


def write_comment(scenario: Scenario, said: dict[str, Any]) -> tuple[str, bool]:
    """The line with the fields of `scenario` that `said` does not have; and whether all of them found room."""
    document, without = scenario.document(), merge(_defaults(), said)
    texts = dict(query_items(scenario))
    items, whole = [], True
    for field in FIELDS:
        if get(document, field.path) == get(without, field.path) or field.name not in texts:
            continue
        if len(texts[field.name]) > (MAX_CONFIG if field.kind is Kind.JSON else MAX_VALUE):
            whole = False
        else:
            items.append((field.name, texts[field.name]))
    line = urlencode(items)
    if len(line) > MOST_LETTERS:
        kinds = {field.name: field.kind for field in FIELDS}
        line, whole = urlencode([item for item in items if kinds[item[0]] is not Kind.JSON]), False
    return (MARK + line if items else ""), whole


def read_comment(text: str) -> dict[str, Any] | None:
    """The fields that the comment line holds; None where there is no such line.

    Raises:
        CommandError: the line cannot be read.
    """
    place = text.find(MARK.rstrip())
    if place < 0 or text[:place].rpartition("\n")[2].strip():
        return None
    line = text[place + len(MARK.rstrip()) :].partition("\n")[0].strip()
    if not line:
        return {}
    try:
        items = parse_qsl(line, keep_blank_values=True, errors="strict", max_num_fields=4 * len(FIELDS))
        return scenario_document(items)
    except ScenarioError as error:
        first = error.refusals[0]
        raise CommandError(f"The line {MARK.strip()} cannot be read: {first.path} {first.message}") from error
    except ValueError as error:
        raise CommandError(f"The line {MARK.strip()} cannot be read: it is no query.") from error


def _defaults() -> dict[str, Any]:
    bare = Scenario.model_validate({"model": {"id": "x"}, "hardware": {"id": "x"}}).document()
    bare["model"]["id"] = bare["hardware"]["id"] = None
    return bare
