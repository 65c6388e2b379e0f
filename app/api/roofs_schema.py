"""Measured roofs as a schema of the API."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.microbench.plan import DEFAULT_SECONDS, FEWEST_SECONDS, MOST_DEVICES, MOST_SECONDS


class MeasureRequest(BaseModel):
    """Which card to measure, and for how long."""

    model_config = ConfigDict(extra="forbid")

    device: int = Field(0, ge=0, lt=MOST_DEVICES, description="The card's number in the driver's order.")
    seconds: float = Field(
        DEFAULT_SECONDS, ge=FEWEST_SECONDS, le=MOST_SECONDS, allow_inf_nan=False, description="Time for what is timed."
    )


class Step(BaseModel):
    """How far a measurement is."""

    step: str = Field(description="What is measured now: a stream, or a number format and the size of the matrices.")
    done: int = Field(description="Steps that are done.")
    of: int = Field(description="All steps.")


class Failed(BaseModel):
    """Why a measurement was refused or failed."""

    code: str = Field(description="Stable.")
    message: str = Field(description="In words.")


class Measuring(BaseModel):
    """Whether a measurement is under way, and how the last one of this server ended."""

    state: Literal["idle", "running"] = Field(description="Whether this machine is measured now.")
    elsewhere: bool = Field(description="Whether it is so by another process, of which no more is known here.")
    libraries: list[str] = Field(description="Installed libraries that could measure; without any, none can be begun.")
    device: int | None = Field(description="The card that is measured.")
    started_at: datetime | None = Field(description="When it was begun.")
    progress: Step | None = Field(description="How far it is; null before the first step.")
    last_error: Failed | None = Field(description="Of the last measurement that this server was asked for.")


class StreamRoof(BaseModel):
    """A pass over memory with elements of fp32."""

    stream: Literal["copy", "triad"] = Field(description="a = b, or a = b + s × c.")
    array_bytes: int = Field(description="Bytes of each array.")
    moved_bytes: int = Field(description="Bytes of a pass: two arrays of a copy, three of a triad.")
    iterations: int = Field(description="Passes that were timed.")
    best_bytes_per_s: float = Field(description="Of the fastest pass.")
    median_bytes_per_s: float = Field(description="Of the median pass.")


class ProductRoof(BaseModel):
    """Products of two square matrices of random numbers."""

    dtype: str = Field(description="Number format.")
    size: int = Field(description="M = N = K.")
    iterations: int = Field(description="Products that were timed.")
    best_flops_per_s: float = Field(description="2 × M × N × K over the time of the fastest.")
    median_flops_per_s: float = Field(description="The same of the median.")


class SkippedRoof(BaseModel):
    """What has no figure."""

    kind: str = Field(description="A stream or a number format.")
    size: int | None = Field(description="Of the matrices; null for all sizes.")
    code: str = Field(description="Stable.")
    message: str = Field(description="In words.")


class UsualBand(BaseModel):
    """What others reached."""

    low: float = Field(description="Share of the vendor's figure.")
    high: float = Field(description="Share of the vendor's figure.")
    source: str = Field(description="Where that was published.")


class BesideVendor(BaseModel):
    """A roof beside the vendor's."""

    kind: str = Field(description="`bandwidth` or a number format.")
    unit: str = Field(description="B/s or FLOP/s.")
    measured: float = Field(description="The best, in `unit`.")
    stated: float | None = Field(description="The catalog's, in `unit`; null where it is not known.")
    share: float | None = Field(description="Measured ÷ stated.")
    verdict: Literal["usual", "low", "high", "impossible"] | None = Field(description="Beside the band.")
    usual: UsualBand | None = Field(description="Null where nothing was published.")


class CardRoofs(BaseModel):
    """One measurement of one card; its state is given as readings, each a value or the reason for its absence."""

    card_name: str = Field(description="As the driver calls it.")
    memory_total_bytes: int = Field(description="As the driver says.")
    measured_at: datetime = Field(description="UTC.")
    library: str = Field(description="What measured: torch or cupy.")
    versions: dict[str, str] = Field(description="Of the library, of what it was built for, and of the driver.")
    streams: list[StreamRoof] = Field(description="Memory.")
    products: list[ProductRoof] = Field(description="Arithmetic.")
    skipped: list[SkippedRoof] = Field(description="What could not be measured.")
    before: dict[str, Any] = Field(description="The card before it worked.")
    under_load: dict[str, Any] = Field(description="The card at its highest power while it worked.")
    after: dict[str, Any] = Field(description="The card after it worked.")
    accelerator: str | None = Field(description="Id in the catalog, where the card is one for certain.")
    beside: list[BesideVendor] = Field(description="The best of each kind beside the catalog's figures.")


class Roofs(Measuring):
    """All that was measured on this machine, the newest first, and what is measured now."""

    roofs: list[CardRoofs] = Field(description="The newest of each card and kind.")
