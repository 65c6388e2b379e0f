"""The wire form of predicted against measured, for the documentation."""

from typing import Literal

from pydantic import BaseModel, Field


class LeftOut(BaseModel):
    """Why measurements are not compared; one that has several reasons is counted at each."""

    reason: str
    measurements: int


class ErrorShares(BaseModel):
    """Errors as shares of what was measured."""

    measurements: int
    median: float
    mean: float
    ninth_decile: float = Field(description="Nine in ten are off by less.")
    within_20_percent: float = Field(description="Share whose error is below 0.2.")
    within_factor_2: float = Field(description="Share that is neither half nor twice what was measured.")


class ErrorSlice(BaseModel):
    """Errors of the scored measurements that share a value; null where there is none to judge by."""

    key: str
    label: str
    measurements: int
    cross_validated: ErrorShares | None = Field(description="By fits that had not seen the model on the accelerator.")
    in_sample: ErrorShares | None = Field(description="By the fit that every answer uses, which has seen the rows.")
    unseen: ErrorShares | None = Field(description="By fits that had seen nothing of the accelerator's family.")
    inside_interval: float | None = Field(
        description="Share inside the 80 % interval of an answer, moved to the cross-validated prediction."
    )
    with_interval: int = Field(description="Measurements for which an interval is claimed.")


class WorstGroup(BaseModel):
    """An engine on a family of accelerators, or with a model, of five scored measurements or more."""

    label: str
    query: dict[str, str] = Field(description="The filters that list its measurements.")
    accelerators: list[str]
    measurements: int
    mean_error: float
    median_speed_ratio: float = Field(description="Predicted ÷ measured speed: below 1 predictions are too slow.")
    share_too_fast: float
    sentence: str


class Worst(BaseModel):
    """Groups with the largest mean error of their cross-validated predictions, worst first."""

    engine_and_family: list[WorstGroup]
    engine_and_model: list[WorstGroup]


class MeasuredInterval(BaseModel):
    """The 80 % interval around the cross-validated prediction."""

    low: float
    high: float


class MeasuredRow(BaseModel):
    """One measurement with its predictions, in seconds or tokens a second as `metric` says."""

    id: str
    source: str
    note: str | None
    model: str
    accelerator: str
    accelerator_family: str
    gpus: int
    engine: str
    engine_version: str | None
    weights: str
    metric: str
    regime: str = Field(description="Quantity and load: `tpot many`, `throughput saturated`.")
    scored: bool = Field(description="False where the source does not say whether it speculates.")
    measured: float
    cross_validated: float
    interval: MeasuredInterval | None
    inside: Literal["inside", "outside", "unclaimed"]
    in_sample: float | None
    unseen: float
    predicted_over_measured: float = Field(description="Of the cross-validated prediction.")
    speed_ratio: float = Field(description="The same for rates, its inverse for times: above 1 is too fast.")
    evaluate: str = Field(description="Address of the whole answer to what was measured.")


class ValidationAnswer(BaseModel):
    """Errors of the measurements that were found, and the measurements themselves, 50 a page."""

    catalog_version: str
    calibration_version: str | None
    gathered: int = Field(description="Measurements that were gathered.")
    total: int = Field(description="Those that a scenario can say, and that are compared.")
    found: int = Field(description="Those of them that the query asks for.")
    left_out: list[LeftOut]
    not_scored: int = Field(description="Compared, but counted in no error: speculation is not stated.")
    errors: ErrorSlice
    errors_by: str
    slices: list[ErrorSlice]
    worst: Worst
    page: int
    pages: int
    rows: list[MeasuredRow]
