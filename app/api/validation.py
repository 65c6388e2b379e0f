"""Predicted against measured by HTTP: errors, the groups that are worst, and the measurements page by page."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.list_parameters import list_parameters
from app.api.problems import PROBLEMS
from app.api.validation_schema import ValidationAnswer
from app.measured import scenario_of
from app.scenario_query import query_items
from app.validation.compared import Compared
from app.validation.errors import Errors, Slice, left_out_counts, slice_of, slices
from app.validation.worst import Group, worst
from app.web import urls
from app.web.listing_query import read_listing
from app.web.problem import JsonResponse, invalid
from app.web.query import items_of
from app.web.services import ValidationDep
from app.web.validation_columns import ROWS_A_PAGE, SEARCHED, validation_columns

router = APIRouter(tags=["catalog"])
MOST_GROUPS = 20
_DOCUMENTED = list_parameters(validation_columns(), SEARCHED, ROWS_A_PAGE)


@router.get("/validation", response_model=ValidationAnswer, responses={422: PROBLEMS[422]}, openapi_extra=_DOCUMENTED)
def validation(request: Request, sheet: ValidationDep) -> Response:
    """Published measurements beside what is predicted for them, all or those a query asks for.

    Errors are |predicted ÷ measured − 1|; figures are in the unit of their metric, seconds or tokens a second.
    """
    listing = read_listing(items_of(request.query_params), validation_columns(sheet.rows), ROWS_A_PAGE)
    if listing.refusals:
        raise invalid(listing.refusals)
    found, by = listing.of(sheet.rows), listing.view("by")
    return JsonResponse(
        {
            "catalog_version": sheet.catalog.version,
            "calibration_version": sheet.calibration_version,
            "gathered": len(sheet.catalog.measurements),
            "total": len(sheet.rows),
            "found": len(found),
            "left_out": [{"reason": why, "measurements": count} for why, count in left_out_counts(sheet.left_out)],
            "not_scored": sum(not row.is_scored for row in sheet.rows),
            "errors": _slice(slice_of(found)),
            "errors_by": by,
            "slices": [_slice(one) for one in slices(found, by)],
            "worst": {
                "engine_and_family": [_group(group) for group in worst(found, "family", MOST_GROUPS)],
                "engine_and_model": [_group(group) for group in worst(found, "model", MOST_GROUPS)],
            },
            "page": listing.page,
            "pages": listing.pages(found),
            "rows": [_row(row) for row in listing.on_page(found)],
        }
    )


def _slice(one: Slice) -> dict[str, Any]:
    return {
        "key": one.key,
        "label": one.label,
        "measurements": one.measurements,
        "cross_validated": _errors(one.cross_validated),
        "in_sample": _errors(one.in_sample),
        "unseen": _errors(one.unseen),
        "inside_interval": None if one.coverage is None else one.coverage.inside,
        "with_interval": 0 if one.coverage is None else one.coverage.measurements,
    }


def _errors(errors: Errors | None) -> dict[str, Any] | None:
    if errors is None:
        return None
    return {
        "measurements": errors.measurements,
        "median": errors.median,
        "mean": errors.mean,
        "ninth_decile": errors.ninth_decile,
        "within_20_percent": errors.within_20_percent,
        "within_factor_2": errors.within_factor_2,
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "label": group.label,
        "query": dict(group.asked),
        "accelerators": list(group.accelerators),
        "measurements": group.measurements,
        "mean_error": group.mean_error,
        "median_speed_ratio": group.speed,
        "share_too_fast": group.too_fast,
        "sentence": group.sentence,
    }


def _row(row: Compared) -> dict[str, Any]:
    measurement = row.measurement
    scenario = scenario_of(measurement)
    return {
        "id": measurement.id,
        "source": measurement.source,
        "note": measurement.note or None,
        "model": measurement.model,
        "accelerator": measurement.accelerator,
        "accelerator_family": row.family,
        "gpus": int(measurement.gpus),
        "engine": measurement.engine,
        "engine_version": measurement.version or None,
        "weights": measurement.weights,
        "metric": measurement.metric.value,
        "regime": row.regime,
        "scored": row.is_scored,
        "measured": row.measured,
        "cross_validated": row.held_out,
        "interval": None if row.low is None or row.high is None else {"low": row.low, "high": row.high},
        "inside": row.inside.value,
        "in_sample": row.in_sample,
        "unseen": row.unseen,
        "predicted_over_measured": row.ratio,
        "speed_ratio": row.speed,
        "evaluate": urls.evaluate_api(query_items(scenario)),
    }
