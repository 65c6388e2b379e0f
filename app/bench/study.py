"""A file of results and a scenario in; the runs beside the default, the fit, and the runs beside the fit out."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.bench.doubts import doubts_about
from app.bench.fit import FitReport, fit
from app.bench.overlay import Overlay, overlay
from app.bench.points import BenchPoint
from app.bench.reader import read
from app.catalog.catalog import Catalog
from app.scenario import Scenario

NAME = "My benchmark"


@dataclass(frozen=True, slots=True)
class Study:
    """`scenario` is the default's; `calibrated` the same with the fit, and `after` the runs beside that, where there is
    one. `doubts` are sentences about the runs themselves.
    """

    scenario: Scenario
    points: Sequence[BenchPoint]
    before: Overlay
    fit: FitReport
    calibrated: Scenario | None
    after: Overlay | None
    doubts: Sequence[str] = ()

    @property
    def models(self) -> Sequence[str]:
        """The models that the runs name, in their order."""
        return list(dict.fromkeys(point.model for point in self.points if point.model))


def study(text: bytes, scenario: Scenario, catalog: Catalog, name: str = NAME) -> Study:
    """The study of a file. A calibration that the scenario carries is left aside.

    Raises:
        BenchError: the file is none that is read here.
        ScenarioError: the scenario names something unknown, or something that is not computed.
    """
    points, plain = read(text), scenario.model_copy(update={"calibration": None})
    before = overlay(plain, points, catalog)
    report = fit(before, catalog, name)
    calibrated = after = None
    if report.calibration is not None:
        calibrated = plain.model_copy(update={"calibration": report.calibration})
        after = overlay(calibrated, points, catalog)
    return Study(plain, points, before, report, calibrated, after, doubts_about(points, plain, catalog))
