"""What an engine's logs look like: the form in which each engine's module describes them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.catalog.catalog import Catalog
from app.startup_log.findings import Findings
from app.startup_log.patterns import LinePattern, Quantity
from app.startup_log.runs import Marks, Run
from app.startup_log.settings import Settings


@dataclass(frozen=True, slots=True)
class Heard:
    """One run of an engine with all that is needed to make a scenario of it; `findings` is what `tell` fills."""

    run: Run
    settings: Settings
    findings: Findings
    catalog: Catalog
    release: str | None


@dataclass(frozen=True, slots=True)
class ReleaseMark:
    """Where an engine prints its release: `behind` is matched after `literal`, and `prefix` put before its group.

    What a build adds to a release behind a plus is not read: it can be a name. No engine's major release has two
    digits, and an address has.
    """

    literal: str
    behind: re.Pattern[str] = re.compile(r"v?([0-9](?:\.[0-9]{1,3}){1,3}(?:\.?(?:a|b|rc|post|dev)[0-9]{1,8}){0,3})")
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class LogFormat:
    """An engine's log.

    `keys` are the figures by which a text is known to be this engine's; `lists` begin its lists of arguments;
    `does_not_apply` are fields of a scenario that it has no equal of; `smallest_decides` says that all workers hold as
    many tokens as the one with the smallest pool.
    """

    id: str
    name: str
    quantities: Mapping[str, Quantity]
    patterns: tuple[LinePattern, ...]
    keys: frozenset[str]
    releases: tuple[ReleaseMark, ...]
    lists: tuple[str, ...]
    marks: Marks
    tell: Callable[[Heard], None]
    does_not_apply: tuple[str, ...] = ()
    smallest_decides: bool = True


def find_release(text: str, marks: tuple[ReleaseMark, ...]) -> str | None:
    """The first release that the text states."""
    for mark in marks:
        at = text.find(mark.literal)
        while at >= 0:
            if matched := mark.behind.match(text, at + len(mark.literal)):
                return mark.prefix + matched[1]
            at = text.find(mark.literal, at + len(mark.literal))
    return None
