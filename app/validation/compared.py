"""One measurement beside its predictions, all of them in the unit of the measurement.

Three predictions, from the most honest to the most flattered: `unseen`, by a fit that had seen nothing of the
accelerator's family; `held_out`, by one that had not seen the model on the accelerator; `in_sample`, by the product as
it answers, whose fit has seen the row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.calc.expected.timing import keys_of
from app.calc.measure import measure
from app.calc.serving import Estimate
from app.catalog.catalog import Catalog
from app.catalog.cross_validated import Blind
from app.catalog.measurements import Measurement
from app.measured import estimate_of, regime_of, scenario_of
from app.resolve import resolve
from app.validation.words import RATES


class Inside(StrEnum):
    """Where a measurement lies of the interval around its cross-validated prediction."""

    YES = "inside"
    NO = "outside"
    UNCLAIMED = "unclaimed"


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """One measurement and its predictions. `in_sample` is None where the product tells no figure.

    `low` and `high` are the interval that the product gives around its own prediction, moved to the cross-validated
    one; None where no interval is claimed. The names are those of the catalog.
    """

    measurement: Measurement
    model: str
    engine: str
    accelerator: str
    family: str
    regime: str
    held_out: float
    unseen: float
    in_sample: float | None
    low: float | None
    high: float | None

    @property
    def measured(self) -> float:
        """Seconds, or tokens a second."""
        return self.measurement.value

    @property
    def ratio(self) -> float:
        """Cross-validated prediction ÷ measured."""
        return self.held_out / self.measured

    @property
    def factor(self) -> float:
        """How many times the cross-validated prediction is off, in whichever direction; at least 1."""
        return max(self.ratio, 1 / self.ratio)

    @property
    def speed(self) -> float:
        """Predicted speed ÷ measured speed: above 1 the prediction is too fast, for a time as for a rate."""
        return self.ratio if self.measurement.metric in RATES else 1 / self.ratio

    @property
    def is_scored(self) -> bool:
        """Whether it counts in error tables."""
        return self.measurement.is_scored

    @property
    def inside(self) -> Inside:
        """Whether the measurement lies inside the interval, ends included."""
        if self.low is None or self.high is None:
            return Inside.UNCLAIMED
        return Inside.YES if self.low <= self.measured <= self.high else Inside.NO


def compared(row: Measurement, blind: Mapping[str, Blind], catalog: Catalog) -> Compared:
    """A measurement beside its predictions; the in-sample one by the way that every answer goes.

    Raises:
        KeyError: no cross-validated prediction is known of the row: the calibration is older than the measurements.
    """
    deployment = resolve(scenario_of(row), catalog).deployment
    keys, estimate, seen = keys_of(deployment), estimate_of(row, measure(deployment)), blind[row.id]
    low, high = _moved(estimate, seen.held_out)
    return Compared(
        measurement=row,
        model=catalog.models[row.model].name,
        engine=catalog.engines[row.engine].name,
        accelerator=catalog.accelerators[row.accelerator].name,
        family=keys.family,
        regime=regime_of(row, keys.stack),
        held_out=seen.held_out,
        unseen=seen.unseen,
        in_sample=estimate.mid,
        low=low,
        high=high,
    )


def _moved(estimate: Estimate, prediction: float) -> tuple[float | None, float | None]:
    """The interval of an estimate around another prediction: its ends keep their ratios to the middle."""
    if estimate.mid is None or estimate.low is None or estimate.high is None:
        return None, None
    return prediction * estimate.low / estimate.mid, prediction * estimate.high / estimate.mid
