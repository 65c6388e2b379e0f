"""What an import from the hub may end in instead: a sentence for each fault, and what it means for our own answer."""

from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

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
