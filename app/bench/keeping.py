"""A calibration as it is kept behind a link: the factors, and the scenario that they were fitted for."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from app.calc.version import FORMULA_VERSION
from app.catalog.catalog import Catalog
from app.refusal import Refusal, ScenarioError
from app.resolve import resolve
from app.scenario import Scenario
from app.store.shared import SharedContents


@dataclass(frozen=True, slots=True)
class Kept:
    """What a link shows. `scenario` carries the calibration; None where this release no longer reads it."""

    document: Mapping[str, Any]
    scenario: Scenario | None


def contents_of(scenario: Scenario, catalog: Catalog, title: str, expires_at: datetime | None) -> SharedContents:
    """What is stored of the calibration that `scenario` carries.

    Raises:
        ScenarioError: it carries none, or names something unknown.
    """
    if scenario.calibration is None:
        raise ScenarioError([Refusal("calibration", "There is no calibration in this scenario: fit one first.")])
    return SharedContents(
        title=title,
        document={"scenario": resolve(scenario, catalog).scenario.document()},
        formula_version=FORMULA_VERSION,
        catalog_version=catalog.version,
        expires_at=expires_at,
    )


def kept(document: Mapping[str, Any], catalog: Catalog) -> Kept:
    """A stored document, read again: never an exception, for a link may be older than the release."""
    try:
        scenario = Scenario.model_validate(document.get("scenario"))
        return Kept(document, resolve(scenario, catalog).scenario if scenario.calibration else None)
    except (ValidationError, ScenarioError):
        return Kept(document, None)
