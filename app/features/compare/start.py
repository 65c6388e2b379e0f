"""What the page offers before anything is asked: the fields for links, and comparisons to begin with.

Addresses of a comparison with one thing changed: the plain links of its page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.calc.quantity import significant
from app.catalog.catalog import Catalog
from app.features.compare.differences import label_of, names
from app.features.compare.plans import BINARY, LETTERS, MOST_PLANS, Comparison
from app.features.workbench.undo import presets
from app.scenario.answer import answer
from app.scenario.query import query_items
from app.scenario.refusal import Refusal
from app.scenario.scenario import Scenario, default_scenario
from app.web import urls


@dataclass(frozen=True, slots=True)
class TextField:
    """One field of the form: what was typed, and what is wrong with it."""

    place: int
    letter: str
    text: str
    error: str


@dataclass(frozen=True, slots=True)
class CompareForm:
    """The fields, what is wrong beside them, and the place of the baseline."""

    fields: Sequence[TextField]
    base: int
    base_error: str
    general: Sequence[str]

    @property
    def has_errors(self) -> bool:
        """True where anything needs mending."""
        return bool(self.base_error or self.general or any(field.error for field in self.fields))


@dataclass(frozen=True, slots=True)
class Ready:
    """A comparison to begin with, and what comes out of it in a sentence."""

    question: str
    outcome: str
    href: str


def compare_form(comparison: Comparison) -> CompareForm:
    """The form as it was sent: every text where it was typed, each message at its field."""
    texts = [*comparison.texts, *[""] * MOST_PLANS][:MOST_PLANS]
    fields = [
        TextField(place, LETTERS[place], text, _errors(f"s.{place}", comparison.refusals))
        for place, text in enumerate(texts)
    ]
    told = {f"s.{place}" for place in range(MOST_PLANS)}
    general = [
        refusal.message if refusal.path.startswith("s.") else f"{refusal.path}: {refusal.message}"
        for refusal in comparison.refusals
        if refusal.path != "base" and ".".join(refusal.path.split(".")[:2]) not in told
    ]
    base = comparison.baseline.position + 1 if comparison.plans else 1
    return CompareForm(fields, base, _errors("base", comparison.refusals), general)


def _errors(path: str, refusals: Sequence[Refusal]) -> str:
    """What is wrong at or below a path, the fields of the scenario called by their names."""
    found = []
    for refusal in refusals:
        if refusal.path == path:
            found.append(refusal.message[:1].upper() + refusal.message[1:])
        elif refusal.path.startswith(f"{path}."):
            found.append(f"{label_of(refusal.path.removeprefix(f'{path}.'))}: {refusal.message}")
    return " ".join(found)


def ready_comparisons(catalog: Catalog) -> tuple[Ready, ...]:
    """Pairs of the workbench's own scenarios, each with what it comes to."""
    usual = default_scenario()
    planner = next(preset.scenario for preset in presets() if preset.person == "Capacity planner")
    home = next(preset.scenario for preset in presets() if preset.person == "Home user")
    return (
        _ready("What does a card with more bandwidth bring?", usual, {"hardware": {"id": "h200-sxm"}}, catalog),
        _ready("What do narrower weights bring?", usual, {"precision": {"weights": "fp8"}}, catalog),
        _ready("One wide card, or two that share each layer?", planner, {"parallelism": {"tensor": 2}}, catalog),
        _ready("The next card for a home user?", home, {"hardware": {"id": "rtx-5090"}}, catalog),
    )


def _ready(question: str, first: Scenario, changed: dict[str, Any], catalog: Catalog) -> Ready:
    document = first.model_dump(mode="json", exclude_unset=True)
    second = Scenario.model_validate(
        {**document, **{key: document.get(key, {}) | part for key, part in changed.items()}}
    )
    answers = [answer(scenario, catalog) for scenario in (first, second)]
    rates = [one.evaluation.measures.serving.output_tokens_per_s for one in answers]
    expected = all(rate.mid is not None for rate in rates)
    told = [significant(rate.best_known if expected else rate.ceiling, 3) for rate in rates]
    rooms = [f"{one.evaluation.measures.memory.max_concurrency:,}" for one in answers]
    called = names(answers, (None, None), LETTERS[:2])
    outcome = (
        f"{called[0]} against {called[1]}: {told[0]} against {told[1]} tokens/s "
        f"{'expected' if expected else 'at best'}, room for {rooms[0]} against {rooms[1]} sequences."
    )
    texts = [urls.query_string(query_items(one.scenario)) for one in answers]
    return Ready(question, outcome, urls.compare(texts))


class Addresses:
    """Addresses of the same comparison with one thing changed; every scenario in them is written out."""

    def __init__(self, comparison: Comparison) -> None:
        self._asked = comparison
        self.texts = [plan.text for plan in comparison.plans]

    def of(
        self,
        texts: Sequence[str] | None = None,
        base: int | None = None,
        *,
        hides: bool | None = None,
        units: str | None = None,
    ) -> str:
        """The comparison, but for what is given; `base` is an index."""
        asked = self._asked
        return urls.compare(
            self.texts if texts is None else texts,
            (asked.base if base is None else base) + 1,
            hides_equal=asked.hides_equal if hides is None else hides,
            units=(BINARY if asked.binary else "gb") if units is None else units,
        )

    def without(self, index: int) -> str:
        """One plan taken away; the baseline stays the baseline, or is the first one again."""
        base = self._asked.base
        left = [text for place, text in enumerate(self.texts) if place != index]
        return self.of(left, 0 if base == index else base - (base > index))

    def swapped(self, index: int) -> str:
        """A plan and its left neighbour in each other's place."""
        texts = list(self.texts)
        texts[index - 1], texts[index] = texts[index], texts[index - 1]
        moved = {index: index - 1, index - 1: index}
        return self.of(texts, moved.get(self._asked.base, self._asked.base))

    def beside(self, index: int, text: str) -> str:
        """Another plan to the right of one."""
        base = self._asked.base
        return self.of([*self.texts[: index + 1], text, *self.texts[index + 1 :]], base + (base > index))
