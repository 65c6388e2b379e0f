"""Which servers a person may name on the live page, by the operator's mode, and how an address has to be written."""

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from app.outbound.policy import (
    DEFAULT_PORTS,
    LAN,
    LOCAL,
    PUBLIC,
    AnyHost,
    BlockedError,
    OwnHosts,
    Place,
    Policy,
    Ports,
    Reach,
    exactly,
)
from app.outbound.target import Target, parse_target
from app.refusal import Refusal
from app.settings import Settings
from app.web.problem import ProblemError, invalid
from app.web.server_fetch import server_policy

FIELD: Final = "address"
LONGEST_ADDRESS: Final = 300
WEB_PORTS: Final[Ports] = (*exactly(DEFAULT_PORTS["http"]), *exactly(DEFAULT_PORTS["https"]))
UNPRIVILEGED_PORTS: Final[Ports] = (*WEB_PORTS, range(1_024, 65_536))
# Where inference servers listen. On a network there are other doors at other ports: a printer at 9100 prints whatever
# it is sent.
SERVING_PORTS: Final[Ports] = (
    *WEB_PORTS,
    range(3_000, 3_100),
    range(8_000, 9_100),
    range(29_000, 32_768),
)
# A stranger's word goes no further than to ask for metrics: nothing else that a server offers is to be set off by it.
_PATH = re.compile(r"(?:(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/metrics)?")
_QUERY = re.compile(r"(?:model=[A-Za-z0-9._~:/%-]+)?")  # A router of llama.cpp asks of which model.


class _Mode(NamedTuple):
    reach: Reach
    ports: Ports
    whose: str


_MODES: Mapping[str, _Mode] = MappingProxyType(
    {
        "local": _Mode(LOCAL, UNPRIVILEGED_PORTS, "of its own machine, such as http://localhost:8000"),
        "lan": _Mode(LAN, SERVING_PORTS, "of its own machine and network, at the ports that such servers use"),
        "public": _Mode(PUBLIC, SERVING_PORTS, "on the public internet, at the ports that such servers use"),
    }
)


def typed_policy(settings: Settings) -> Policy | None:
    """What may be fetched for a person who names a server; None where nobody may name any."""
    mode = _MODES.get(settings.typed_servers)
    if mode is None:
        return None
    return server_policy(settings, OwnHosts() if mode.reach == LOCAL else AnyHost(), mode.ports, mode.reach)


def typed_target(settings: Settings, address: str) -> Target:
    """The server that a person named, without a path, or with one that ends in /metrics; http:// may be left out.

    A host's name is not looked up here: where it leads is checked whenever the server is read.

    Raises:
        ProblemError: 403 where nobody may name a server; 422 for an address that may not be read, with the reason.
    """
    policy = typed_policy(settings)
    if policy is None:
        raise ProblemError(
            403,
            "This server reads only the inference servers that its operator configured; the operator can let people "
            "name others with TOKENROOF_TYPED_SERVERS.",
        )
    text = address.strip()
    if not text:
        raise _refused("Name a server, such as http://localhost:8000.")
    if len(text) > LONGEST_ADDRESS:
        raise _refused(f"At most {LONGEST_ADDRESS} characters.")
    try:
        target = parse_target(text if "://" in text else f"http://{text}", policy)
        if target.host == "localhost" and Place.MACHINE not in policy.reach:
            raise BlockedError("that is this server's own machine")
    except BlockedError as error:
        whose = _MODES[settings.typed_servers].whose
        raise _refused(f"Not read: {error.reason}. This server reads inference servers {whose}.") from None
    path, mark, query = target.path.partition("?")
    path = path.removesuffix("/")
    if not _PATH.fullmatch(path) or not _QUERY.fullmatch(query):
        raise _refused("Not read: leave the path out, or let it end in /metrics; at most ?model=… may follow.")
    return replace(target, path=f"{path or '/'}{mark if query else ''}{query}")


def _refused(message: str) -> ProblemError:
    return invalid([Refusal(FIELD, message)])
