"""A saved configuration as it was and as it is: the stored scenario answered again, and what has changed since.

Secret links at the edge: their kinds, what people write on them, expiry, and the store's refusals as problems.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from math import isclose
from typing import Annotated, Any, Final, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, Field, Strict, ValidationError

from app.catalog.catalog import Catalog
from app.checkpoint.text import clean_notes, clean_text, within
from app.scenario.answer import Answer, answer
from app.scenario.document import document, headline
from app.scenario.parts import Part
from app.scenario.refusal import Refusal, ScenarioError
from app.scenario.scenario import Scenario
from app.settings import Settings
from app.store.errors import (
    ExpiredError,
    NotFoundError,
    StoreBusyError,
    StoreError,
    UnstorableError,
    WrongEditTokenError,
)
from app.store.links import Contents, Gone, LinkName, Links, Saved
from app.store.tables import NOTES_MAX_CHARS, TITLE_MAX_CHARS
from app.web import urls
from app.web.problem import ProblemError

SAME = 1e-9  # relative; a stored double comes back as it was


class ConfigurationPayload(BaseModel):
    """What a saved configuration keeps: the normalised scenario, notes, and every explained number of that day."""

    scenario: dict[str, Any]
    notes: str
    headline: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """A number that the link remembers and today's formulas or facts give otherwise; None where there is none now."""

    id: str
    label: str
    unit: str
    then: float
    now: float | None


@dataclass(frozen=True, slots=True)
class SavedView:
    """A living link: what was saved, today's answer (None where there can be none any more), and the gap."""

    saved: Saved
    payload: ConfigurationPayload
    answer: Answer | None
    obstacle: str | None
    differences: tuple[Difference, ...]

    @property
    def is_as_saved(self) -> bool:
        """True when today's numbers are those of the day it was saved."""
        return self.answer is not None and not self.differences


def contents_of(answered: Answer, title: str, notes: str, expires_at: datetime | None) -> Contents:
    """What the store keeps of an answer: the scenario written out, every explained number, and the versions."""
    return Contents(
        title=title,
        document={
            "scenario": answered.scenario.document(),
            "notes": notes,
            "headline": headline(document(answered)),
        },
        formula_version=answered.formula_version,
        catalog_version=answered.catalog_version,
        expires_at=expires_at,
    )


def view(saved: Saved, catalog: Catalog) -> SavedView:
    """`saved` beside what the same scenario gives today."""
    payload = ConfigurationPayload.model_validate(saved.document)
    try:
        today = answer(Scenario.model_validate(payload.scenario), catalog)
    except (ScenarioError, ValidationError) as error:
        obstacle = str(error) if isinstance(error, ScenarioError) else "Its form is no longer read."
        return SavedView(saved, payload, None, obstacle, tuple(_differences(payload.headline, None)))
    return SavedView(saved, payload, today, None, tuple(_differences(payload.headline, today)))


def _differences(then: Mapping[str, Any], today: Answer | None) -> list[Difference]:
    explanations = {} if today is None else {e.id: e for e in today.evaluation.explanations}
    found = []
    for id_, value in then.items():
        explanation = explanations.get(id_)
        if explanation is None:
            found.append(Difference(id_, id_, "", value, None))
        elif not isclose(value, explanation.value, rel_tol=SAME):
            found.append(Difference(id_, explanation.label, explanation.unit, value, explanation.value))
    return found


PRIVATE: Final = {"Cache-Control": "private, no-store", "X-Robots-Tag": "noindex", "Referrer-Policy": "no-referrer"}
Payload = TypeVar("Payload", bound=BaseModel)
Title = Annotated[
    str,
    Field(min_length=1, max_length=TITLE_MAX_CHARS),
    AfterValidator(clean_text),
    AfterValidator(partial(within, most=TITLE_MAX_CHARS)),
]
Notes = Annotated[
    str,
    Field(max_length=NOTES_MAX_CHARS),
    AfterValidator(clean_notes),
    AfterValidator(partial(within, most=NOTES_MAX_CHARS)),
]


class ShareTexts(Part):
    """What a person adds to a reading or a calibration when sharing it."""

    title: Title = Field(description="Title of what the link shows.")
    expires_in_days: Annotated[int, Strict()] | None = Field(
        None,
        description="Days until the link expires; left out: the server's default (90 unless set otherwise). "
        "0 asks for a link without expiry, where the operator allows it.",
        ge=0,
        le=3650,
    )


class LinkTexts(ShareTexts):
    """What a person adds to a scenario when saving it."""

    title: Title = Field(description="Title of the saved configuration.")
    notes: Notes = Field("", description="Notes, plain text.")


class SnapshotPayload(BaseModel):
    """Live readings of one moment, as /probes has them, and the page as it stood, in the form of its release."""

    probes: list[dict[str, Any]] = []
    live: dict[str, Any] | None = None
    view: Any = None


class CalibrationPayload(BaseModel):
    """The scenario that carries the calibration, in the form of its release."""

    scenario: Any = None


@dataclass(frozen=True, slots=True)
class LinkKind(Generic[Payload]):
    """One kind of what people keep behind a link. All expire by the same rule, that of `expiry`."""

    name: LinkName
    noun: str
    payload: type[Payload]
    page: Callable[[str], str]  # from the slug to the address of the page
    api: Callable[[str], str]  # and to that of its JSON
    template: str
    is_editable: bool = False

    @property
    def not_found(self) -> str:
        """The sentence for where there is none."""
        return f"There is no {self.noun} at this address."

    def payload_of(self, saved: Saved) -> Payload:
        """What a living link keeps."""
        return self.payload.model_validate(saved.document)


CONFIGURATION: Final = LinkKind(
    "configuration",
    "saved configuration",
    ConfigurationPayload,
    urls.saved,
    urls.saved_api,
    template="saved",
    is_editable=True,
)
SNAPSHOT: Final = LinkKind(
    "snapshot", "snapshot", SnapshotPayload, urls.snapshot, urls.snapshot_api, template="live_snapshot"
)
CALIBRATION: Final = LinkKind(
    "calibration", "calibration", CalibrationPayload, urls.calibration, urls.calibration_api, template="bench_kept"
)
KINDS: Final[tuple[LinkKind[Any], ...]] = (CONFIGURATION, SNAPSHOT, CALIBRATION)
NOT_FOUND: Final = CONFIGURATION.not_found


def expiry(days: int | None, settings: Settings) -> datetime | None:
    """The moment a link expires.

    Raises:
        ProblemError: 422, a link without expiry is not allowed here.
    """
    if days == 0:
        if settings.allow_unexpiring_links:
            return None
        message = "Links without expiry are not allowed on this server."
        raise ProblemError(422, message, [Refusal("expires_in_days", message)])
    return datetime.now(UTC) + timedelta(days=days or settings.link_expiry_days)


def living(links: Links, slug: str, not_found: str = NOT_FOUND) -> Saved:
    """What the link behind `slug` shows; `not_found` is the sentence for where there is none.

    Raises:
        ProblemError: 404 for wrong, malformed and revoked ones alike, 410 after the expiry.
    """
    with store_problems():
        found = links.get(slug)
    if found is None:
        raise ProblemError(404, not_found)
    if isinstance(found, Gone):
        raise ProblemError(410, f"This link expired on {found.expired_at:%Y-%m-%d}.")
    return found


@contextmanager
def store_problems(not_found: str = NOT_FOUND) -> Iterator[None]:
    """Turns the store's refusals into problems for the edge."""
    try:
        yield
    except ExpiredError as error:
        raise ProblemError(410, f"This link expired on {error.expired_at:%Y-%m-%d}.") from error
    except NotFoundError as error:
        raise ProblemError(404, not_found) from error
    except WrongEditTokenError as error:
        raise ProblemError(403, "This edit token is not that of the link.") from error
    except UnstorableError as error:
        raise ProblemError(422, str(error)) from error
    except StoreBusyError as error:
        headers = {"Retry-After": str(error.retry_after_s)}
        raise ProblemError(503, "The database is busy; nothing was changed.", headers=headers) from error
    except StoreError as error:
        raise ProblemError(503, "Saved links are not available: the database needs its operator.") from error
