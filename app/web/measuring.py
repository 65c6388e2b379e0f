"""The button that measures a card, as pages and API share it: who may press it, and a refusal as an answer."""

from typing import Final

from starlette.requests import Request

from app.microbench.outcome import Fault, MeasureError
from app.microbench.plan import DEFAULT_SECONDS
from app.microbench.service import BenchState
from app.web.operator import is_operator, require_operator
from app.web.problem import ProblemError
from app.web.services import Services

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
