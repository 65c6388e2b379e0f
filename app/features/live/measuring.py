"""Measured roofs as a schema of the API.

The button that measures a card, as pages and API share it: who may press it, and a refusal as an answer.

Measured roofs of this machine's cards: what there is, and the operator's button that measures anew.
"""

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Body, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from app.features.live.operator import is_operator, require_operator
from app.features.services import Services, ServicesDep
from app.machine.peaks.beside import roofs_document
from app.machine.peaks.outcome import Fault, MeasureError
from app.machine.peaks.plan import DEFAULT_SECONDS, FEWEST_SECONDS, MOST_DEVICES, MOST_SECONDS
from app.machine.peaks.service import BenchState
from app.web.openapi import PROBLEMS
from app.web.problem import JsonResponse, ProblemError, StrictRoute


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


TURNED_OFF: Final = (
    "Measuring from the page is turned off here: the operator's setting TOKENROOF_MICROBENCHMARK allows it, "
    "and the command `tokenroof measure` always does."
)
_STATUSES: Final = {
    Fault.NO_SUCH_CARD: 422,
    Fault.NO_LIBRARY: 503,
    Fault.NOT_STARTED: 503,
    Fault.STOPPED: 503,
    Fault.UNFORESEEN: 503,
}
_CONFLICT: Final = 409  # of every other refusal: the card, or the machine, is not in a state to be measured


def may_measure(request: Request, services: Services) -> bool:
    """Whether to show the button: to the operator, where it is turned on and a library is installed."""
    allowed = services.settings.microbenchmark and bool(services.bench.libraries)
    return allowed and is_operator(request, services.settings)


async def begin_measuring(
    request: Request, services: Services, device: int = 0, seconds: float = DEFAULT_SECONDS, token: str | None = None
) -> BenchState:
    """The state, once a measurement is under way; `token` is the operator's, where a form brought it.

    Raises:
        ProblemError: 403, somebody else asks or it is turned off; 409, a measurement is under way, or the card is in
            use, split or lost; 422, there is no such card; 503, no library is installed.
    """
    require_operator(request, services.settings, token)
    if not services.settings.microbenchmark:
        raise ProblemError(403, TURNED_OFF)
    try:
        return await services.bench.start(device, seconds)
    except MeasureError as error:
        raise ProblemError(_STATUSES.get(error.fault, _CONFLICT), error.message) from error


api = APIRouter(tags=["probes"], route_class=StrictRoute)

MEASURE_PROBLEMS: dict[int | str, dict[str, Any]] = PROBLEMS | {
    status: PROBLEMS[422] | {"description": description}
    for status, description in (
        (403, "Somebody other than the operator asks, or the operator has not turned it on."),
        (409, "A measurement is under way, or the card cannot be measured: others use it, it is split, it is lost."),
        (422, "A field is out of range or unknown, or there is no such card."),
        (503, "No library that could measure is installed, or no process can be started."),
    )
}


@api.get("/roofs", response_model=Roofs)
def roofs(services: ServicesDep) -> Response:
    """What was measured on this machine, the newest of each card and kind, and how far a measurement under way is."""
    measured = [roofs_document(run, services.catalog) for run in services.bench.roofs()]
    return JsonResponse(services.bench.state().document() | {"roofs": measured})


@api.post("/roofs/measure", status_code=202, response_model=Measuring, responses=MEASURE_PROBLEMS)
async def measure(
    request: Request, services: ServicesDep, asked: Annotated[MeasureRequest | None, Body()] = None
) -> Response:
    """Begin to measure a card: a minute of full load. For the operator alone; GET /roofs tells how far it is.

    The operator is whoever asks at this machine under a loopback address, or bears the operator's token.
    """
    asked = asked or MeasureRequest()
    state = await begin_measuring(request, services, asked.device, asked.seconds)
    return JsonResponse(state.document(), status_code=202)
