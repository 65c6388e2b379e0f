"""A scenario read from the query string of a request, for the pages and the API alike."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pydantic import ValidationError
from starlette.datastructures import QueryParams

from app.calc.notices import Notice
from app.catalog.catalog import Catalog
from app.scenario.answer import WITHOUT_EFFECT, Answer, answer
from app.scenario.query import BY_NAME, name_of, names_set_aside, scenario_document, unknown_names
from app.scenario.refusal import Refusal, ScenarioError
from app.scenario.scenario import Scenario
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


def answer_from(items: Iterable[tuple[str, str]], catalog: Catalog) -> Answer:
    """The answer to the scenario that query items stand for.

    Texts, ranges and ids are looked at one after the other. So that a person sees everything wrong at once, what was
    refused is set aside and the rest is looked at again.

    Raises:
        ScenarioError: every field that is not right, each at its path.
    """
    items_kept = list(items)
    left, refusals, refused = items_kept, list[Refusal](), set[str | None]()
    while True:
        try:
            answered = answer(scenario_from(left), catalog)
        except ScenarioError as error:
            again = bool(refusals)
            fresh = [r for r in error.refusals if name_of(r.path) not in refused and not (again and _follows(r))]
            refusals += fresh
            refused |= {name_of(r.path) for r in fresh}
            kept = [item for item in left if item[0] not in refused]
            if len(kept) == len(left):
                raise ScenarioError(refusals) from error
            left = kept
            continue
        if refusals:
            raise ScenarioError(refusals)
        return _told_what_was_set_aside(answered, items_kept)


def _told_what_was_set_aside(answered: Answer, items: Iterable[tuple[str, str]]) -> Answer:
    """The answer, with a notice of what the query says and another choice in it leaves without effect."""
    labels = [f"{BY_NAME[name].label} ({name})" for name in names_set_aside(items)]
    if not labels:
        return answered
    message = f"Without effect beside the model, accelerator, draft and engine that are chosen: {', '.join(labels)}."
    return replace(answered, notices=(*answered.notices, Notice(WITHOUT_EFFECT, message)))


def _follows(refusal: Refusal) -> bool:
    """True where a refusal may only come of what was set aside: arithmetic is judged by the weights and the card, and a
    calibration needs one factor at least.
    """
    return refusal.path in ("precision.compute", "calibration")


def refuse_unknown(items: Sequence[tuple[str, str]], besides: Sequence[str] = ()) -> None:
    """Nothing, when each name is a field.

    Raises:
        ScenarioError: names that nothing reads: a misspelt field must not be answered with a default.
    """
    unknown = unknown_names((name for name, _ in items), besides)
    if unknown:
        raise ScenarioError([Refusal(name[:60], "There is no such query parameter.") for name in unknown])
