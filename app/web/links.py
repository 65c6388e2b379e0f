"""Secret links at the edge: their kinds, what people write on them, expiry, and the store's refusals as problems."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, Final, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, Field, Strict

from app.refusal import Refusal
from app.saved_view import ConfigurationPayload
from app.scenario_parts import Part
from app.settings import Settings
from app.store.errors import (
    ExpiredError,
    NotFoundError,
    StoreBusyError,
    StoreError,
    UnstorableError,
    WrongEditTokenError,
)
from app.store.links import Gone, LinkName, Links, Saved
from app.store.tables import NOTES_MAX_CHARS, TITLE_MAX_CHARS
from app.text import clean_notes, clean_text, within
from app.web import urls
from app.web.problem import ProblemError

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
