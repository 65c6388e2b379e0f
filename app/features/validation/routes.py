"""The wire form of predicted against measured, for the documentation.

Predicted against measured: errors, charts and every measurement, as the address narrows and orders them.

Predicted against measured by HTTP: errors, the groups that are worst, and the measurements page by page.

DeepSeek-V3/R1 as served in production: published figures beside the prediction.
"""

from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from app.features.services import CatalogDep, ValidationDep
from app.features.validation.columns import ROWS_A_PAGE, SEARCHED, validation_columns
from app.features.validation.compared import Compared, scenario_of
from app.features.validation.errors import Errors, Group, Slice, left_out_counts, slice_of, slices, worst
from app.features.validation.production import production, published
from app.features.validation.view import residuals, shown, validation_view
from app.features.workbench.answer_view import subject
from app.features.workbench.charts.times import CAUSES
from app.scenario.query import query_items
from app.web import urls
from app.web.listing import listed
from app.web.listing_query import list_parameters, read_listing
from app.web.openapi import PROBLEMS
from app.web.problem import JsonResponse, invalid
from app.web.query import items_of
from app.web.templating import TemplatesDep


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


pages = APIRouter(include_in_schema=False)


@pages.get("/validation")
def validation_page(request: Request, sheet: ValidationDep) -> Response:
    """The measurements that the query asks for. Not a coroutine: the first request predicts them all, on a thread."""
    listing = read_listing(items_of(request.query_params), validation_columns(sheet.rows), ROWS_A_PAGE)
    found = [] if listing.refusals else listing.of(sheet.rows)
    columns = shown(listing.columns)
    context: dict[str, Any] = {
        "form": listing,
        "columns": columns,
        "found": found,
        "rows": residuals(listing.on_page(found), columns),
        "view": validation_view(found, listing, sheet),
        "total": len(sheet.rows),
        "address": urls.validation,
        "twin": None if listing.refusals else urls.validation_api(listing.items),
    }
    return listed(request, listing, urls.validation, ("validation", "validation_update"), context)


api = APIRouter(tags=["catalog"])
MOST_GROUPS = 20
_DOCUMENTED = list_parameters(validation_columns(), SEARCHED, ROWS_A_PAGE)


@api.get("/validation", response_model=ValidationAnswer, responses={422: PROBLEMS[422]}, openapi_extra=_DOCUMENTED)
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


@pages.get("/production")
async def deepseek(catalog: CatalogDep, templates: TemplatesDep) -> Response:
    """The published deployment, its sizes and both of its figures."""
    found = production(catalog)
    items = urls.scenario_items(found.answer.scenario)
    evaluation = found.answer.evaluation
    expected = evaluation.measures.expected
    context: dict[str, Any] = {
        "told": published(),
        "sides": found.sides,
        "subject": subject(found.answer),
        "verdict": evaluation.verdict,
        "measures": evaluation.measures,
        "causes": [(name, getattr(expected.causes, key), why) for key, name, _, why in CAUSES] if expected else [],
        "workbench": urls.workbench(items),
        "optimizations": urls.optimizations(items),
        "twin": urls.evaluate_api(items),
    }
    return templates.page("production", context, 200)
