"""The inference servers that the operator configured: checked once at the start, then read as they are written."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from pydantic import SecretStr

from app.outbound.client import Outbound
from app.outbound.policy import ANYWHERE, AnyHost, BlockedError, Policy, exactly
from app.outbound.target import Target, parse_target
from app.probes.servers.probe import ServerProbe
from app.settings import Settings
from app.text import clean_text, within
from app.web.server_fetch import OutboundMaker, blocking_fetch, server_policy

MOST_SERVERS: Final = 32
LONGEST_NAME: Final = 40
ANY_PORT: Final = (range(1, 65_536),)
_SERVERS, _TOKENS = "TOKENROOF_SERVERS", "TOKENROOF_SERVER_TOKENS"
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")


class ServerTargetError(ValueError):
    """A setting that names a server wrongly: says which entry and why, and repeats neither address nor token."""


@dataclass(frozen=True, slots=True)
class ServerTarget:
    """A server that the operator named; the token, if it wants one, goes to it and to nobody else."""

    name: str
    target: Target
    token: SecretStr | None = None

    def policy(self, settings: Settings) -> Policy:
        """What may be fetched for this server: from its host and port alone, wherever that is."""
        policy = server_policy(settings, frozenset({self.target.host}), exactly(self.target.port), ANYWHERE)
        return replace(policy, schemes=frozenset({self.target.scheme}))

    @property
    def authorization(self) -> str | None:
        """The header that it wants to see."""
        return None if self.token is None else f"Bearer {self.token.get_secret_value()}"


def server_targets(settings: Settings) -> tuple[ServerTarget, ...]:
    """The servers of the settings, in their order.

    Raises:
        ServerTargetError: too many, an entry without a name, a name that is taken, an address that may not be read, a
            token that belongs to no server. The message may be printed.
    """
    if len(settings.servers) > MOST_SERVERS:
        raise ServerTargetError(f"{_SERVERS} has {len(settings.servers)} entries; at most {MOST_SERVERS} are allowed.")
    policy = server_policy(settings, AnyHost(), ANY_PORT, ANYWHERE)
    tokens = _tokens(settings)
    targets: dict[str, ServerTarget] = {}
    for _, name, address in _named(_SERVERS, settings.servers):
        if name in targets:
            raise ServerTargetError(f"{_SERVERS}: {name!r} is there twice.")
        try:
            target = parse_target(address, policy)
        except BlockedError as error:
            # Without the cause: a parser's own words repeat the address.
            raise ServerTargetError(f"{_SERVERS}, {name!r}: {error.reason}.") from None
        targets[name] = ServerTarget(name, target, tokens.pop(name, None))
    if tokens:
        # Its name is not repeated: who writes the two the wrong way round has the token there.
        raise ServerTargetError(f"{_TOKENS}: an entry is for a server that {_SERVERS} does not name.")
    return tuple(targets.values())


def server_probes(settings: Settings, outbound: OutboundMaker = Outbound) -> list[ServerProbe]:
    """A probe for each server of the settings; their sources are "server-1" and so on.

    Raises:
        ServerTargetError: as `server_targets` does.
    """
    return [
        ServerProbe(
            f"server-{number}",
            server.name,
            blocking_fetch(outbound(server.policy(settings)), server.target, server.authorization),
            interval_s=settings.server_interval_s,
        )
        for number, server in enumerate(server_targets(settings), 1)
    ]


def _tokens(settings: Settings) -> dict[str, SecretStr]:
    """The tokens by the name of their server."""
    tokens: dict[str, SecretStr] = {}
    for where, name, token in _named(_TOKENS, (entry.get_secret_value() for entry in settings.server_tokens)):
        if name in tokens:
            raise ServerTargetError(f"{where} is for a server that has a token already.")
        if not _TOKEN.fullmatch(token):
            raise ServerTargetError(f"{where} has no token, or characters in it that a token may not have.")
        tokens[name] = SecretStr(token)
    return tokens


def _named(variable: str, entries: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Where each entry stands, in words, its name and what follows the first equals sign."""
    for number, entry in enumerate(entries, 1):
        where = f"{variable}: entry {number}"
        name, _, rest = entry.partition("=")
        if not rest or "://" in name:
            raise ServerTargetError(f"{where} is not written as name=value.")
        try:
            yield where, within(clean_text(name), LONGEST_NAME), rest.strip()
        except ValueError:
            reason = f"has a name that is empty or longer than {LONGEST_NAME} characters"
            raise ServerTargetError(f"{where} {reason}.") from None
