"""Host names to addresses: asked once for each connection, and all of the answer must be within reach."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future

from app.outbound.address import IPAddress, parse_address
from app.outbound.errors import BlockedError, UnreachableError
from app.outbound.policy import DEFAULT_PORTS
from app.outbound.reach import Reach, place_of

Resolver = Callable[[str], Awaitable[Sequence[str]]]
"""Takes a host name, gives its addresses as text. Raises OSError when there is none."""


async def checked_addresses(host: str, resolve: Resolver, reach: Reach) -> tuple[IPAddress, ...]:
    """The addresses of `host` to try, at most one of each family, in the resolver's order; an IP address is its own.

    Raises:
        BlockedError: one of them is out of `reach`. A name that has a private address beside a public one is an attack,
            or at least not a public service.
        UnreachableError: there is none, or nobody could be asked.
    """
    try:
        answer = [host] if parse_address(host) is not None else await resolve(host)
    except (OSError, RuntimeError) as error:  # RuntimeError: no thread to ask in.
        raise UnreachableError("the name cannot be resolved") from error
    first_of_family: dict[int, IPAddress] = {}
    for text in answer:
        address = parse_address(text)
        if address is None or place_of(address) not in reach:
            raise BlockedError("the name has an address that is not allowed")
        first_of_family.setdefault(address.version, address)
    if not first_of_family:
        raise UnreachableError("the name has no address")
    return tuple(first_of_family.values())


async def system_resolver(host: str) -> Sequence[str]:
    """The addresses that the operating system gives for `host`.

    In a daemon thread of its own, not in the event loop's pool: that pool is joined at the end, and a name server that
    does not answer would keep the server from stopping. Who asks for the same name meanwhile waits for the same answer,
    so that a name that is asked for every second takes up one thread and no more. Nothing is remembered afterwards.
    """
    return await asyncio.wrap_future(_look_up(host))


_under_way: dict[str, Future[Sequence[str]]] = {}
_lock = threading.Lock()  # Probes have event loops of their own.


def _look_up(host: str) -> Future[Sequence[str]]:
    with _lock:
        if (running := _under_way.get(host)) is not None:
            return running
        answer: Future[Sequence[str]] = Future()
        answer.set_running_or_notify_cancel()  # From here on, who gives up does not stop it for the others.
        threading.Thread(target=_ask, args=(host, answer), name="outbound-name", daemon=True).start()
        _under_way[host] = answer
        return answer


def _ask(host: str, answer: Future[Sequence[str]]) -> None:
    addresses: Sequence[str] = ()
    failure: OSError | None = None
    try:
        found = socket.getaddrinfo(host, DEFAULT_PORTS["https"], type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        addresses = [str(entry[4][0]) for entry in found]
    except OSError as error:
        failure = error
    except Exception:  # A name that has no IDNA form, for one; somebody waits for the answer, whatever it is.
        failure = socket.gaierror("no such name")
    with _lock:
        del _under_way[host]
    if failure is None:
        answer.set_result(addresses)
    else:
        answer.set_exception(failure)
