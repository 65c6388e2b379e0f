"""Measured roofs of this machine's cards: what there is, and the operator's button that measures anew."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from starlette.responses import Response

from app.api.problems import PROBLEMS
from app.api.roofs_schema import MeasureRequest, Measuring, Roofs
from app.microbench.beside import roofs_document
from app.web.measuring import begin_measuring
from app.web.problem import JsonResponse, StrictRoute
from app.web.services import ServicesDep

router = APIRouter(tags=["probes"], route_class=StrictRoute)

MEASURE_PROBLEMS: dict[int | str, dict[str, Any]] = PROBLEMS | {
    status: PROBLEMS[422] | {"description": description}
    for status, description in (
        (403, "Somebody other than the operator asks, or the operator has not turned it on."),
        (409, "A measurement is under way, or the card cannot be measured: others use it, it is split, it is lost."),
        (422, "A field is out of range or unknown, or there is no such card."),
        (503, "No library that could measure is installed, or no process can be started."),
    )
}


@router.get("/roofs", response_model=Roofs)
def roofs(services: ServicesDep) -> Response:
    """What was measured on this machine, the newest of each card and kind, and how far a measurement under way is."""
    measured = [roofs_document(run, services.catalog) for run in services.bench.roofs()]
    return JsonResponse(services.bench.state().document() | {"roofs": measured})


@router.post("/roofs/measure", status_code=202, response_model=Measuring, responses=MEASURE_PROBLEMS)
async def measure(
    request: Request, services: ServicesDep, asked: Annotated[MeasureRequest | None, Body()] = None
) -> Response:
    """Begin to measure a card: a minute of full load. For the operator alone; GET /roofs tells how far it is.

    The operator is whoever asks at this machine under a loopback address, or bears the operator's token.
    """
    asked = asked or MeasureRequest()
    state = await begin_measuring(request, services, asked.device, asked.seconds)
    return JsonResponse(state.document(), status_code=202)
