"""YAML of manifests and values files: PyYAML's events, without what could run away or mean more than it says.

Anchors, aliases, tags, merge keys and complex keys are refused; scalars stay texts, but null, true and false.
"""

from collections.abc import Iterator
from typing import Any

import yaml

from app.engine_io.launch.findings import CommandError

MOST_LINES = 4000
MOST_DEPTH = 24
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


def read_documents(text: str) -> list[Any]:
    """Every document of a YAML text.

    Raises:
        CommandError: not YAML, or YAML with something that is not read here; names the line.
    """
    if text.count("\n") > MOST_LINES:
        raise CommandError(f"The YAML has more than {MOST_LINES:,} lines.")
    documents: list[Any] = []
    try:
        # CBaseLoader parses with libyaml: PyYAML's own scanner takes seconds for a megabyte.
        events: Iterator[Any] = iter(yaml.parse(text, Loader=yaml.CBaseLoader))
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                first = next(events)
                if not (isinstance(first, yaml.ScalarEvent) and _is_plain(first) and not first.value):
                    documents.append(_value(first, events, 0))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = "it is no YAML" if error.problem is None else error.problem
        raise _fault(0 if mark is None else mark.line, problem) from None
    except (yaml.YAMLError, UnicodeError):
        raise CommandError("The YAML cannot be read: it holds characters that YAML does not allow.") from None
    return documents


def _fault(line: int, what: str) -> CommandError:
    return CommandError(f"The YAML cannot be read at line {line + 1}: {what}.")


def _is_plain(event: yaml.ScalarEvent) -> bool:
    return event.style in (None, "")


def _value(event: Any, events: Iterator[Any], depth: int) -> Any:
    line = event.start_mark.line
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None or event.tag is not None:
        raise _fault(line, "anchors, aliases and tags are not read")
    if depth > MOST_DEPTH:
        raise _fault(line, f"it is nested deeper than {MOST_DEPTH} levels")
    if isinstance(event, yaml.ScalarEvent):
        return _WORDS.get(event.value, event.value) if _is_plain(event) else event.value
    if isinstance(event, yaml.SequenceStartEvent):
        items: list[Any] = []
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            items.append(_value(item, events, depth + 1))
        return items
    found: dict[str, Any] = {}
    while not isinstance(key := next(events), yaml.MappingEndEvent):
        line = key.start_mark.line
        if not isinstance(key, yaml.ScalarEvent):
            raise _fault(line, "a key is no plain word")
        name = key.value
        if name == "<<" and _is_plain(key):
            raise _fault(line, "merge keys are not read")
        if name in found:
            raise _fault(line, "a key is there twice")
        found[name] = _value(next(events), events, depth + 1)
    return found
