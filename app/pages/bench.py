"""The benchmark page: results of a benchmark tool over the prediction, and the user's own efficiency fitted to them."""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.bench.points import BenchError
from app.bench.study import NAME, study
from app.catalog.catalog import Catalog
from app.pages.bench_form import BenchForm, Brought, brought_by, opened, scenario_form
from app.pages.bench_view import BenchView
from app.pages.form_lists import FormLists
from app.pages.saving import saving_context
from app.refusal import ScenarioError
from app.scenario_parts import Text
from app.web.problem import refusals_of
from app.web.query import items_of
from app.web.services import Services, ServicesDep
from app.web.templating import templates_of

NOTHING = "Paste the results of a benchmark here, or choose their files."
_NAME = TypeAdapter[str](Text)
router = APIRouter(include_in_schema=False)


@router.get("/benchmarks")
async def start(request: Request, services: ServicesDep) -> Response:
    """The empty form, for the scenario of the query."""
    form = await run_in_threadpool(opened, items_of(request.query_params), services.catalog)
    return _page(request, services, form, None, 422 if form.is_refused else 200)


@router.post("/benchmarks")
async def lay_over(request: Request, services: ServicesDep) -> Response:
    """The posted results beside their prediction. They are kept in the form and nowhere else."""
    async with request.form(max_part_size=services.settings.max_batch_body_bytes) as posted:
        brought = await brought_by(posted)
    form, view = await run_in_threadpool(_studied, brought, services.catalog)
    return _page(request, services, form, view, 200 if view else 422)


def _studied(brought: Brought, catalog: Catalog) -> tuple[BenchForm, BenchView | None]:
    """The form with what is wrong at its fields, and the view where nothing is."""
    fields, scenario = scenario_form(brought.items, catalog)
    errors: dict[str, str] = {}
    name = NAME
    try:
        name = _NAME.validate_python(brought.name.strip() or NAME)
    except ValidationError as error:
        errors["name"] = refusals_of(error)[0].message
    if brought.problem is not None:
        errors["text"] = brought.problem
    elif not brought.text.strip():
        errors["text"] = NOTHING
    view = None
    if scenario is not None and not errors:
        try:
            view = BenchView(study(brought.text.encode(), scenario, catalog, name))
        except (BenchError, ScenarioError, UnicodeEncodeError) as error:
            errors["text"] = str(error)
    return BenchForm(fields, brought, errors), view


def _page(request: Request, services: Services, form: BenchForm, view: BenchView | None, status: int) -> Response:
    lists: FormLists = request.app.state.form_lists
    context: dict[str, Any] = {
        "form": form,
        "lists": lists,
        "view": view,
        **saving_context(services.settings),
    }
    return templates_of(request).page("bench", context, status)
