"""The part of a Scenario that carries a user's own calibration, by value: a link needs nothing that is stored."""

from typing import Annotated, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from app.scenario_parts import Part, Real, Text, Ui, Whole

MOST_POINTS = 10**6


class OwnFactor(Part):
    """How many times slower one side ran in a benchmark of the user's own than is expected without it."""

    factor: Annotated[Real, Ui("cal_{}", "Times slower, {}")] = Field(
        description="Times slower: 1.1 makes every expected time of this side a tenth longer, 0.9 shorter, no shorter "
        "than what kernels at the vendor's peak would take.",
        ge=0.05,
        le=20,
    )
    points: Annotated[Whole, Ui("cal_{}_n", "Measurements, {}")] = Field(
        description="Measurements that it was fitted to.", ge=1, le=MOST_POINTS
    )
    low: Annotated[Real | None, Ui("cal_{}_low", "Lower end, {}")] = Field(
        None,
        description="Lower end of the interval that eight measurements of ten lie in, as a multiple of what is then "
        "expected. With `high`, or neither: no interval is claimed.",
        gt=0,
        le=1,
    )
    high: Annotated[Real | None, Ui("cal_{}_high", "Upper end, {}")] = Field(
        None, description="Its upper end.", ge=1, le=100
    )

    @model_validator(mode="after")
    def _both_ends(self) -> Self:
        if (self.low is None) != (self.high is None):
            # Told at the end that is missing: where it was given and refused, one message stands there and no second.
            place = "low" if self.low is None else "high"
            error = PydanticCustomError("one_end", "An interval has two ends: give low and high, or neither.")
            raise ValidationError.from_exception_data(
                "OwnFactor", [InitErrorDetails(type=error, loc=(place,), input=None)]
            )
        return self


class OwnCalibration(Part):
    """A calibration that was fitted to a benchmark of the user's own; a side that is left out stays as it was fitted to
    published measurements."""

    name: Annotated[Text, Ui("cal_name", "Calibrated by", empty="published measurements")] = Field(
        description="How it is called on the page."
    )
    decode: OwnFactor | None = Field(None, description="Of the steps that give tokens.")
    prefill: OwnFactor | None = Field(None, description="Of prompts, the host's part of a request with them.")

    @model_validator(mode="after")
    def _of_something(self) -> Self:
        if self.decode is None and self.prefill is None:
            raise ValueError("A calibration is of decode times, of prefill times, or of both: give one.")
        return self
