"""Forms that save behind a link: their choices, and what is made of a posted form."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile

from app.catalog.catalog import Catalog
from app.features.links.links import ShareTexts
from app.scenario.answer import Answer
from app.scenario.refusal import Refusal, ScenarioError
from app.settings import Settings
from app.web.problem import invalid, refusals_of
from app.web.query import MOST_ITEMS, answer_from

SEE_OTHER: Final = 303
Texts = TypeVar("Texts", bound=ShareTexts)
EXPIRY_DAYS = (7, 30, 90, 365)
MAX_QUERY = 32_000


def saving_context(settings: Settings) -> Mapping[str, Any]:
    """What the save form offers."""
    days = sorted({*EXPIRY_DAYS, settings.link_expiry_days})
    choices = [(str(d), f"in {d} days") for d in days]
    if settings.allow_unexpiring_links:
        choices.append(("0", "never"))
    return {"savable": True, "expiry_choices": choices, "expiry_default": str(settings.link_expiry_days)}


def text_of(form: FormData, name: str) -> str:
    """A posted text; an upload in its place is refused.

    Raises:
        ProblemError: 422.
    """
    value = form.get(name, "")
    if isinstance(value, UploadFile):
        raise invalid([Refusal(name, "A file is not expected here.")])
    return value


def texts_of(form: FormData, texts: type[Texts]) -> Texts:
    """Title and expiry of a posted form, and notes where `texts` has them.

    Raises:
        ProblemError: 422, each message at its field.
    """
    days = text_of(form, "expires_in_days").strip()
    if days and not (days.isascii() and days.isdigit() and len(days) < 6):
        raise invalid([Refusal("expires_in_days", "Must be a number of days.")])
    words = {name: text_of(form, name) for name in ("title", "notes") if name in texts.model_fields}
    try:
        return texts.model_validate({**words, "expires_in_days": int(days) if days else None})
    except ValidationError as error:
        raise invalid(refusals_of(error)) from error


def answer_of(form: FormData, catalog: Catalog) -> Answer:
    """The answer to the scenario that the form carries as a query string.

    Raises:
        ProblemError: 422, each message at its field.
    """
    items = query_of(form)
    try:
        return answer_from(items, catalog)
    except ScenarioError as error:
        raise invalid(refusals_of(error)) from error


def query_of(form: FormData) -> list[tuple[str, str]]:
    """The items of the query string that the form carries.

    Raises:
        ProblemError: 422, it is too long, or none.
    """
    query = text_of(form, "query")
    if len(query) > MAX_QUERY:
        raise invalid([Refusal("query", "is too long.")])
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_ITEMS)
    except ValueError as error:  # too many fields
        raise invalid([Refusal("query", "is no query string that is read here.")]) from error
