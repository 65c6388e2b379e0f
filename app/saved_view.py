"""A saved configuration as it was and as it is: the stored scenario answered again, and what has changed since."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isclose
from typing import Any

from pydantic import BaseModel, ValidationError

from app.answer import Answer, answer
from app.catalog.catalog import Catalog
from app.document import document, headline
from app.refusal import ScenarioError
from app.scenario import Scenario
from app.store.links import Contents, Saved

SAME = 1e-9  # relative; a stored double comes back as it was


class ConfigurationPayload(BaseModel):
    """What a saved configuration keeps: the normalised scenario, notes, and every explained number of that day."""

    scenario: dict[str, Any]
    notes: str
    headline: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """A number that the link remembers and today's formulas or facts give otherwise; None where there is none now."""

    id: str
    label: str
    unit: str
    then: float
    now: float | None


@dataclass(frozen=True, slots=True)
class SavedView:
    """A living link: what was saved, today's answer (None where there can be none any more), and the gap."""

    saved: Saved
    payload: ConfigurationPayload
    answer: Answer | None
    obstacle: str | None
    differences: tuple[Difference, ...]

    @property
    def is_as_saved(self) -> bool:
        """True when today's numbers are those of the day it was saved."""
        return self.answer is not None and not self.differences


def contents_of(answered: Answer, title: str, notes: str, expires_at: datetime | None) -> Contents:
    """What the store keeps of an answer: the scenario written out, every explained number, and the versions."""
    return Contents(
        title=title,
        document={
            "scenario": answered.scenario.document(),
            "notes": notes,
            "headline": headline(document(answered)),
        },
        formula_version=answered.formula_version,
        catalog_version=answered.catalog_version,
        expires_at=expires_at,
    )


def view(saved: Saved, catalog: Catalog) -> SavedView:
    """`saved` beside what the same scenario gives today."""
    payload = ConfigurationPayload.model_validate(saved.document)
    try:
        today = answer(Scenario.model_validate(payload.scenario), catalog)
    except (ScenarioError, ValidationError) as error:
        obstacle = str(error) if isinstance(error, ScenarioError) else "Its form is no longer read."
        return SavedView(saved, payload, None, obstacle, tuple(_differences(payload.headline, None)))
    return SavedView(saved, payload, today, None, tuple(_differences(payload.headline, today)))


def _differences(then: Mapping[str, Any], today: Answer | None) -> list[Difference]:
    explanations = {} if today is None else {e.id: e for e in today.evaluation.explanations}
    found = []
    for id_, value in then.items():
        explanation = explanations.get(id_)
        if explanation is None:
            found.append(Difference(id_, id_, "", value, None))
        elif not isclose(value, explanation.value, rel_tol=SAME):
            found.append(Difference(id_, explanation.label, explanation.unit, value, explanation.value))
    return found
