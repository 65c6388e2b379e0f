"""What a person pastes to name a plan: a workbench query or address, or a saved link. Only parsed, never fetched.

A comparison as it is asked for in an address: up to four plans, the baseline, and what is to be hidden.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

from app.catalog.catalog import Catalog
from app.features.compare.differences import names
from app.features.links.links import view
from app.scenario.answer import Answer
from app.scenario.query import BY_NAME, unknown_names
from app.scenario.refusal import Refusal, ScenarioError
from app.store.links import Saved, parse_token
from app.web import urls
from app.web.problem import ProblemError
from app.web.query import MOST_ITEMS, answer_from

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


MOST_PLANS = 4
LETTERS = "ABCD"
NAMES = ("s", "base", "equal", "units")
BINARY, HIDE = "gib", "hide"
_OF_A_VIEW = ("units", "undo")
Lookup = Callable[[str], Saved]


@dataclass(frozen=True, slots=True)
class Plan:
    """One column. `position` is its place in the address, from 0; `changed` counts numbers that a saved link remembers
    otherwise; `ignored` are names of its query that nothing reads."""

    position: int
    answer: Answer
    slug: str | None = None
    title: str | None = None
    changed: int = 0
    ignored: tuple[str, ...] = ()
    name: str = ""

    @property
    def letter(self) -> str:
        """A to D, by its place."""
        return LETTERS[self.position]

    @property
    def label(self) -> str:
        """Letter and name: no two plans share it."""
        return f"{self.letter} · {self.name}"

    @property
    def written(self) -> str:
        """The scenario as a query string, every field written out."""
        return urls.query_string(urls.scenario_items(self.answer.scenario))

    @property
    def text(self) -> str:
        """How an address names this plan: a saved link by its own address, else the scenario written out."""
        return self.written if self.slug is None else urls.saved(self.slug)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The plans that could be read, and what is wrong with the others. `base` is an index into `plans`."""

    texts: tuple[str, ...]
    plans: tuple[Plan, ...]
    base: int
    hides_equal: bool
    binary: bool
    refusals: tuple[Refusal, ...]
    unknown: tuple[str, ...]

    @property
    def baseline(self) -> Plan:
        """The plan that the others are measured against."""
        return self.plans[self.base]


def read_comparison(items: Sequence[tuple[str, str]], catalog: Catalog, lookup: Lookup) -> Comparison:
    """The comparison that query items ask for. Nothing raises: what is wrong stands in `refusals`, each at its path.

    Args:
        items: of the address; texts that are empty are fields left empty.
        catalog: where ids are looked up.
        lookup: the saved configuration behind a slug; raises ProblemError.
    """
    texts = tuple(value for name, value in items if name == "s")
    refusals = list[Refusal]()
    plans = list[Plan]()
    for position, text in enumerate(texts[:MOST_PLANS]):
        if not text.strip():
            continue
        try:
            plans.append(_plan(position, text, catalog, lookup))
        except ScenarioError as error:
            refusals += [Refusal(f"s.{position}{r.path and '.'}{r.path}", r.message) for r in error.refusals]
    if any(text.strip() for text in texts[MOST_PLANS:]):
        count = sum(bool(text.strip()) for text in texts)
        message = f"{count} plans are asked for; at most four stand side by side. The further ones are left out."
        refusals.append(Refusal(f"s.{MOST_PLANS}", message))
    base, wrong = _base(items, texts, plans)
    return Comparison(
        texts=texts[:MOST_PLANS],
        plans=tuple(replace(plan, name=name) for plan, name in zip(plans, _names(plans), strict=True)),
        base=base,
        hides_equal=("equal", HIDE) in items,
        binary=("units", BINARY) in items,
        refusals=(*refusals, *wrong, *_equal(items)),
        unknown=tuple(unknown_names((name for name, _ in items if name not in NAMES))),
    )


def _plan(position: int, text: str, catalog: Catalog, lookup: Lookup) -> Plan:
    typed = read_typed(text)
    if typed.slug is None:
        ignored = tuple(unknown_names((name for name, _ in typed.items), _OF_A_VIEW))
        return Plan(position, answer_from(typed.items, catalog), ignored=ignored)
    try:
        saved = lookup(typed.slug)
    except ProblemError as error:
        raise ScenarioError([Refusal("", error.detail)]) from error
    seen = view(saved, catalog)
    if seen.answer is None:
        raise ScenarioError([Refusal("", f"This saved scenario can no longer be answered: {seen.obstacle}")])
    return Plan(position, seen.answer, typed.slug, saved.title, len(seen.differences))


def _names(plans: Sequence[Plan]) -> list[str]:
    return names([plan.answer for plan in plans], [plan.title for plan in plans], [plan.letter for plan in plans])


def _base(items: Sequence[tuple[str, str]], texts: Sequence[str], plans: Sequence[Plan]) -> tuple[int, list[Refusal]]:
    """The index of the baseline: of the plan at the place that `base` names, the first one where it names none."""
    given = [value.strip() for name, value in items if name == "base"]
    if not given or given == [""]:
        return 0, []
    if len(given) > 1:
        return 0, [Refusal("base", "is given twice.")]
    if given[0] not in [str(n + 1) for n in range(MOST_PLANS)]:
        return 0, [Refusal("base", "Must be a whole number from 1 to 4: the place of a plan.")]
    position = int(given[0]) - 1
    found = [index for index, plan in enumerate(plans) if plan.position == position]
    if found:
        return found[0], []
    if position < len(texts) and texts[position].strip():
        return 0, []  # it is there and could not be read, which is told at its own field
    return 0, [Refusal("base", f"There is no plan {LETTERS[position]} to compare with.")]


def _equal(items: Sequence[tuple[str, str]]) -> list[Refusal]:
    given = {value for name, value in items if name == "equal"}
    return [Refusal("equal", f"Must be {HIDE} or show.")] if given - {HIDE, "show", ""} else []
