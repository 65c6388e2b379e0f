"""A scenario read from the query string of a request, for the pages and the API alike."""

from collections.abc import Iterable, Sequence

from pydantic import ValidationError
from starlette.datastructures import QueryParams

from app.resolve import Refusal, ScenarioError
from app.scenario import Scenario
from app.scenario_query import scenario_document, unknown_names
from app.web.problem import refusals_of

MOST_ITEMS = 200


def items_of(params: QueryParams) -> list[tuple[str, str]]:
    """The query's items, in order.

    Raises:
        ScenarioError: absurdly many.
    """
    items = params.multi_items()
    if len(items) > MOST_ITEMS:
        raise ScenarioError([Refusal("", f"More than {MOST_ITEMS} query parameters.")])
    return items


def scenario_from(items: Iterable[tuple[str, str]]) -> Scenario:
    """The scenario that query items stand for.

    Raises:
        ScenarioError: every field that is not right, each at its path.
    """
    try:
        return Scenario.model_validate(scenario_document(items))
    except ValidationError as error:
        raise ScenarioError(refusals_of(error)) from error


def refuse_unknown(items: Sequence[tuple[str, str]], besides: Sequence[str] = ()) -> None:
    """Nothing, when each name is a field.

    Raises:
        ScenarioError: names that nothing reads: a misspelt field must not be answered with a default.
    """
    unknown = unknown_names((name for name, _ in items), besides)
    if unknown:
        raise ScenarioError([Refusal(name[:60], "There is no such query parameter.") for name in unknown])
