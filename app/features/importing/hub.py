"""What an import from the hub may end in instead: a sentence for each fault, and what it means for our own answer.

Imports from the hub: the configuration of a model that somebody knows by name only.

Off unless the operator allows it. What comes back is remembered for a while, is asked for once however many people ask
at the same time, and is read as strictly as what people post.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from cachetools import TLRUCache

from app.checkpoint.text import StrictJsonError, loads
from app.outbound.client import OK, Fetched, Outbound
from app.outbound.policy import OutboundError, Policy, TooLargeError, TooSlowError, WrongTypeError
from app.settings import Settings
from app.web.problem import ProblemError


class HubFault(Enum):
    """Why there is no configuration. The value is the name in logs and tests."""

    NOT_ALLOWED = "not_allowed"
    BAD_NAME = "bad_name"
    NOT_FOUND = "not_found"
    GATED = "gated"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    NOT_JSON = "not_json"
    UNREACHABLE = "unreachable"
    BUSY = "busy"


class _Telling(NamedTuple):
    status: int
    sentence: str
    remembered_s: float = 0.0
    """For how long the same question is answered from memory. Long enough that a page that asks again and again does
    not pass that on to the hub, short enough that a person who has put it right need not wait."""


_PASTE = "Paste the contents of its config.json instead."
_TELLINGS = MappingProxyType(
    {
        HubFault.NOT_ALLOWED: _Telling(
            403,
            "This server does not fetch from the hub; its operator can allow it with TOKENROOF_HUB_IMPORT=true. "
            + _PASTE,
        ),
        HubFault.BAD_NAME: _Telling(
            422, "That is no name of a model on the hub: owner/name, of letters, digits, dots, dashes and underscores."
        ),
        HubFault.NOT_FOUND: _Telling(
            404, "The hub has no public model of that name, or it has no config.json at that revision.", 60
        ),
        HubFault.GATED: _Telling(
            403, "That model is gated or private: the hub shows its files to people it knows only. " + _PASTE, 60
        ),
        HubFault.TOO_LARGE: _Telling(502, "The file on the hub is larger than this server reads. " + _PASTE, 60),
        HubFault.TOO_SLOW: _Telling(504, "The hub took too long to answer. Try again, or paste the config.json.", 10),
        HubFault.NOT_JSON: _Telling(502, "What the hub has there is no JSON object that can be read.", 60),
        HubFault.UNREACHABLE: _Telling(
            502, "This server cannot reach the hub at the moment. Try again, or paste the config.json.", 10
        ),
        HubFault.BUSY: _Telling(503, "As many imports as are allowed are under way. Try again in a few seconds."),
    }
)


class HubError(ProblemError):
    """No configuration, because of `fault`. Left alone in a route it becomes the right answer by itself."""

    def __init__(self, fault: HubFault, detail: str | None = None) -> None:
        self.fault = fault
        telling = _TELLINGS[fault]
        headers = {"Retry-After": "5"} if fault is HubFault.BUSY else {}
        super().__init__(telling.status, detail or telling.sentence, headers=headers)

    @property
    def remembered_s(self) -> float:
        """For how many seconds this is the answer to the same question; 0 for what may pass at once."""
        return _TELLINGS[self.fault].remembered_s


logger = logging.getLogger("tokenroof.hub")

CONFIG: Final = "config.json"
QUANTIZATION: Final = "hf_quant_config.json"
MOST_REMEMBERED: Final = 256
MOST_REMEMBERED_BYTES: Final = 16 * 1024 * 1024

# The hub sends its JSON files as plain text; those that lie in object storage come as a stream of bytes.
CONTENT_TYPES: Final = frozenset({"application/json", "text/plain", "application/octet-stream"})
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_NAME = re.compile(f"{_PART}/{_PART}")
_REVISION = re.compile(_PART)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_NO_OWNERS = frozenset({"api", "datasets", "spaces"})  # other things than models live below these


@dataclass(frozen=True, slots=True)
class HubConfig:
    """The files of a model on the hub, parsed; whoever asked may do with them as they like.

    `commit` is the 40 digits of the revision they are of, where the hub told; `source` is the address of `config`.
    """

    name: str
    config: dict[str, Any]
    quantization: dict[str, Any] | None
    commit: str | None
    source: str


class Fetcher(Protocol):
    """What the hub needs of `Outbound`."""

    async def get(self, url: str) -> Fetched:
        """The answer to a GET. Raises OutboundError."""


class _Files(NamedTuple):
    """What is remembered: the text, so that its size is known and nobody can change what others get."""

    config: bytes
    quantization: bytes | None
    commit: str | None
    source: str


class _Question(NamedTuple):
    name: str
    revision: str


class Hub:
    """Fetches configurations by name. Belongs to one event loop; makes nothing before it is first used."""

    def __init__(
        self, settings: Settings, outbound: Fetcher | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._outbound = outbound or (Outbound(policy_of(settings)) if settings.hub_import else None)
        self._recent: TLRUCache[_Question, _Files | HubError] = TLRUCache(
            MOST_REMEMBERED_BYTES, ttu=self._forgotten_at, timer=clock, getsizeof=_room
        )
        self._running: dict[_Question, asyncio.Task[_Files | HubError]] = {}
        self._closed = False

    @property
    def is_allowed(self) -> bool:
        """Whether the operator allows imports; while not, `fetch` refuses."""
        return self._outbound is not None and self._settings.hub_import

    async def fetch(self, name: str, revision: str | None = None) -> HubConfig:
        """The configuration of the model `name` ("owner/name") at `revision`: a branch, tag or commit, else the newest.

        Raises:
            HubError: there is none to be had; its `fault` says why, and it is a ProblemError with a fitting status.
        """
        if not self.is_allowed:
            raise HubError(HubFault.NOT_ALLOWED)
        question = _question(name, revision)
        outcome = self._recent.get(question) or await self._asked(question)
        if isinstance(outcome, HubError):
            # A new one for everybody: an exception that is raised twice carries the other's traceback.
            raise HubError(outcome.fault, outcome.detail)
        quantization = None if outcome.quantization is None else _parsed(outcome.quantization)
        return HubConfig(name, _parsed(outcome.config), quantization, outcome.commit, outcome.source)

    async def aclose(self) -> None:
        """Ends what is under way; who waits for it is told that the hub cannot be reached."""
        self._closed = True
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _asked(self, question: _Question) -> "_Files | HubError":
        """The outcome of the one request for `question`; a caller that gives up does not stop it for the others."""
        task = self._running.get(question)
        if task is None:
            if self._closed:
                return HubError(HubFault.UNREACHABLE)
            if len(self._running) >= self._settings.hub_max_parallel:
                return HubError(HubFault.BUSY)
            task = self._running[question] = asyncio.create_task(self._ask(question), name="hub-import")
        await asyncio.wait({task})
        return HubError(HubFault.UNREACHABLE) if task.cancelled() else task.result()

    async def _ask(self, question: _Question) -> "_Files | HubError":
        outcome: _Files | HubError
        try:
            outcome = await self._files(question)
        except HubError as error:
            outcome = HubError(error.fault, error.detail)
        finally:
            del self._running[question]
        if _room(outcome) <= MOST_REMEMBERED_BYTES:
            self._recent[question] = outcome
        return outcome

    def _forgotten_at(self, _: _Question, outcome: "_Files | HubError", now: float) -> float:
        return now + (outcome.remembered_s if isinstance(outcome, HubError) else self._settings.hub_cache_s)

    async def _files(self, question: _Question) -> _Files:
        """Both files of one commit, within the time of one import."""
        try:
            async with asyncio.timeout(self._settings.hub_timeout_s):
                config, commit = await self._file(question, CONFIG)
                if config is None:
                    raise HubError(HubFault.NOT_FOUND)
                pinned = question._replace(revision=commit or question.revision)
                quantization, _ = await self._file(pinned, QUANTIZATION)
        except TimeoutError as error:
            raise HubError(HubFault.TOO_SLOW) from error
        return _Files(config, quantization, commit, self._address(pinned, CONFIG))

    async def _file(self, question: _Question, file: str) -> tuple[bytes | None, str | None]:
        """The file and the commit it is of; None for the file when the model has none of that name."""
        assert self._outbound is not None  # noqa: S101 - `fetch` has seen to it
        try:
            fetched = await self._outbound.get(self._address(question, file))
        except OutboundError as error:
            logger.warning("import from the hub: %s", error.reason)
            raise HubError(_fault_of(error)) from error
        if fetched.status == OK:
            _check(fetched.body, file)
            return fetched.body, _commit(fetched)
        if fetched.status == 404:
            return None, None
        logger.warning("import from the hub: status %d", fetched.status)
        raise HubError(_refusal(fetched))

    def _address(self, question: _Question, file: str) -> str:
        return f"https://{self._settings.hub_host}/{question.name}/resolve/{question.revision}/{file}"


def _room(outcome: "_Files | HubError") -> int:
    """Bytes that an outcome is counted as; no less than its share, so that not too many are remembered."""
    least = MOST_REMEMBERED_BYTES // MOST_REMEMBERED
    return (
        least if isinstance(outcome, HubError) else max(least, len(outcome.config) + len(outcome.quantization or b""))
    )


def policy_of(settings: Settings) -> Policy:
    """What the settings allow the import to fetch."""
    return Policy(
        hosts=frozenset({settings.hub_host, *settings.hub_redirect_hosts}),
        content_types=CONTENT_TYPES,
        most_body_bytes=settings.hub_max_bytes,
        total_s=settings.hub_timeout_s,
        connect_s=settings.hub_connect_timeout_s,
    )


def _question(name: str, revision: str | None) -> _Question:
    """The question, if its parts are safe to be put into a path: no dots alone, no slash but the one, no escapes."""
    fits = _NAME.fullmatch(name) and len(name) <= 128 and name.partition("/")[0] not in _NO_OWNERS
    if not fits or ".." in name:
        raise HubError(HubFault.BAD_NAME)
    if revision is not None and (not _REVISION.fullmatch(revision) or ".." in revision):
        raise HubError(HubFault.BAD_NAME, "That is no revision: a branch, a tag or a commit, without a slash.")
    return _Question(name, revision or "main")


def _check(body: bytes, file: str) -> None:
    try:
        # Some published files hold Infinity, which Python writes and JSON does not have.
        value = loads(body, constants_are_text=True)
    except StrictJsonError as error:
        raise HubError(HubFault.NOT_JSON, f"{file} on the hub cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise HubError(HubFault.NOT_JSON, f"{file} on the hub is not a JSON object.")


def _parsed(body: bytes) -> dict[str, Any]:
    value: dict[str, Any] = loads(body, constants_are_text=True)
    return value


def _commit(fetched: Fetched) -> str | None:
    """The commit as the hub tells it, in the answer or in a redirect on the way to it."""
    told: list[Mapping[str, str]] = [fetched.headers, *reversed(fetched.redirects)]
    commits = [headers.get("x-repo-commit", "") for headers in told]
    return next((commit for commit in commits if _COMMIT.fullmatch(commit)), None)


def _refusal(fetched: Fetched) -> HubFault:
    """What a status other than 200 and 404 means."""
    if fetched.status in (401, 403):
        # To strangers the hub says 401 of models that do not exist too, and tells them apart in this header.
        missing = fetched.headers.get("x-error-code") == "RepoNotFound"
        return HubFault.NOT_FOUND if missing else HubFault.GATED
    return HubFault.NOT_FOUND if fetched.status in (410, 451) else HubFault.UNREACHABLE


def _fault_of(error: OutboundError) -> HubFault:
    match error:
        case TooLargeError():
            return HubFault.TOO_LARGE
        case TooSlowError():
            return HubFault.TOO_SLOW
        case WrongTypeError():
            return HubFault.NOT_JSON
        case _:  # What was blocked, and why, is for the operator: the log has it.
            return HubFault.UNREACHABLE
