"""A calibration as it is kept behind a link: the factors, and the scenario that they were fitted for."""

from datetime import datetime
from typing import Any

from pydantic import ValidationError

from app.calc.evaluate import FORMULA_VERSION
from app.catalog.catalog import Catalog
from app.scenario.refusal import Refusal, ScenarioError
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario
from app.store.links import Contents


def contents_of(scenario: Scenario, catalog: Catalog, title: str, expires_at: datetime | None) -> Contents:
    """What is stored of the calibration that `scenario` carries.

    Raises:
        ScenarioError: it carries none, or names something unknown.
    """
    if scenario.calibration is None:
        raise ScenarioError([Refusal("calibration", "There is no calibration in this scenario: fit one first.")])
    return Contents(
        title=title,
        document={"scenario": resolve(scenario, catalog).scenario.document()},
        formula_version=FORMULA_VERSION,
        catalog_version=catalog.version,
        expires_at=expires_at,
    )


def kept(stored: Any, catalog: Catalog) -> Scenario | None:
    """A stored scenario with its calibration, read again; None where this release no longer reads it."""
    try:
        scenario = Scenario.model_validate(stored)
        return resolve(scenario, catalog).scenario if scenario.calibration else None
    except (ValidationError, ScenarioError):
        return None
