"""What the parts of a Scenario are made of: texts, numbers, a closed and frozen form, and how an input is shown.

The part of a Scenario that carries a user's own calibration, by value: a link needs nothing that is stored.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from app.calc.dtypes import Dtype
from app.checkpoint.text import clean_text, dumps, within

MAX_TEXT = 120

Text = Annotated[
    str,
    Field(min_length=1, max_length=MAX_TEXT),
    AfterValidator(clean_text),
    AfterValidator(partial(within, most=MAX_TEXT)),
]
Identifier = Annotated[str, Field(min_length=1, max_length=MAX_TEXT, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
Whole = Annotated[int, Strict()]
Real = Annotated[float, Strict()]


@dataclass(frozen=True, slots=True)
class Ui:
    """How one input is called and shown: all that its pydantic field does not say already.

    The kind, the bounds and the default are those of the field. In `name` and `label`, `{}` stands for the key above:
    `decode` of `calibration.decode.factor`, or the dtype of a rate. Inputs of one `group` fold away together. `empty`
    says what an empty input means; `choices` are pairs of a text of the query and its words.
    """

    name: str
    label: str
    unit: str = ""
    hint: str = ""
    group: str = ""
    empty: str = ""
    slider: tuple[Literal["log", "linear"], float, float] | None = None
    choices: tuple[tuple[str, str], ...] = ()
    phrase: str = ""
    """The value in the name of a plan that differs in it: `TP {}`; without one it is the label and the value."""
    empty_is_null: bool | None = None
    """None: as the default says, see `app.scenario.query`."""


def plain_json(given: dict[str, Any] | None) -> dict[str, Any] | None:
    """`given`, if it is what can be stored and come back: no NaN, no infinity, no half character at any depth.

    Raises:
        ValueError: it is not.
    """
    if given is not None:
        try:
            dumps(given)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError("Must be plain JSON: finite numbers, whole characters.") from error
    return given


class Part(BaseModel):
    """Closed, frozen and finite: an unknown key, a NaN or an infinity is refused by name."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class CustomAccelerator(Part):
    """An accelerator that the catalog does not have. Rates are dense; the link is one-way; GB is 10^9 bytes."""

    name: Annotated[Text, Ui("hw_name", "Name of your accelerator")] = Field(
        "Custom accelerator", description="How it is called on the page."
    )
    memory_gb: Annotated[Real, Ui("hw_mem", "Memory", "GB")] = Field(
        description="Memory as marketed, GB.", ge=0.001, le=1e6
    )
    memory_reported_mib: Annotated[Whole | None, Ui("hw_mib", "Reported memory", "MiB", group="rates")] = Field(
        None, description="Memory as the driver reports it, MiB.", ge=1, le=10**9
    )
    bandwidth_gb_per_s: Annotated[Real, Ui("hw_bw", "Bandwidth", "GB/s")] = Field(
        description="Memory bandwidth, GB/s.", ge=0.001, le=1e9
    )
    dense_tflops: Annotated[
        dict[Dtype, Annotated[float, Strict(), Field(ge=1e-6, le=1e9)]],
        Ui("hw_{}", "Dense {}", "TFLOP/s", group="rates"),
    ] = Field(description="Dense matrix rate by element type, TFLOP/s (10^12).", min_length=1)
    tdp_w: Annotated[Real | None, Ui("hw_tdp", "Power", "W")] = Field(
        None, description="Rated power, W.", ge=0.001, le=1e6
    )
    usd_per_hour: Annotated[Real | None, Ui("hw_usd", "Price an hour", "$")] = Field(
        None, description="Price of an hour, US dollars.", ge=0, le=1e6
    )
    link_one_way_gb_per_s: Annotated[Real | None, Ui("hw_link", "Link, one way", "GB/s", group="rates")] = Field(
        None, description="Link in one direction, GB/s.", ge=0.001, le=1e9
    )


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
