"""Scenarios side by side: their evaluations, what differs in the inputs, and the results in rows."""

from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.compare_schema import COMPARE_PARAMETERS, ComparisonAnswer
from app.api.problems import PROBLEMS
from app.compare.document import comparison_document
from app.compare.plans import read_comparison
from app.refusal import Refusal
from app.store.links import Saved
from app.web.links import PRIVATE, living
from app.web.problem import JsonResponse, invalid
from app.web.query import items_of
from app.web.services import Services, ServicesDep

router = APIRouter(tags=["evaluate"])


@router.get(
    "/compare",
    response_model=ComparisonAnswer,
    responses={422: PROBLEMS[422]},
    openapi_extra=COMPARE_PARAMETERS,
)
def compare(request: Request, services: ServicesDep) -> Response:
    """Up to four scenarios or saved links side by side, as the page of the same query shows them.

    A refusal names the plan and the field: `s.0.hardware.id`.
    """
    found = read_comparison(items_of(request.query_params), services.catalog, partial(_living, services))
    refusals = [*found.refusals, *(Refusal(name[:60], "There is no such query parameter.") for name in found.unknown)]
    for plan in found.plans:
        refusals += [Refusal(f"s.{plan.position}.{n[:60]}", "There is no such query parameter.") for n in plan.ignored]
    if not found.plans and not refusals:
        refusals.append(Refusal("s", "This field is needed: a scenario or a saved link for each plan."))
    if refusals:
        raise invalid(refusals)
    headers = PRIVATE if any(plan.slug for plan in found.plans) else None
    return JsonResponse(comparison_document(found), headers=headers)


def _living(services: Services, slug: str) -> Saved:
    return living(services.links("configuration"), slug)
