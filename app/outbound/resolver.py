"""Host names to addresses: asked once for each connection, and all of the answer must be public."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from app.outbound.address import IPAddress, is_public, parse_address
from app.outbound.errors import BlockedError, UnreachableError
from app.outbound.target import HTTPS_PORT

Resolver = Callable[[str], Awaitable[Sequence[str]]]
"""Takes a host name, gives its addresses as text. Raises OSError when there is none."""


async def public_addresses(host: str, resolve: Resolver) -> tuple[IPAddress, ...]:
    """The addresses of `host` to try, at most one of each family, in the resolver's order.

    Raises:
        BlockedError: one of them is not public. A name that has a private address beside a public one is an attack, or
            at least not a public service.
        UnreachableError: there is none.
    """
    try:
        answer = await resolve(host)
    except OSError as error:
        raise UnreachableError("the name cannot be resolved") from error
    first_of_family: dict[int, IPAddress] = {}
    for text in answer:
        address = parse_address(text)
        if address is None or not is_public(address):
            raise BlockedError("the name has an address that is not public")
        first_of_family.setdefault(address.version, address)
    if not first_of_family:
        raise UnreachableError("the name has no address")
    return tuple(first_of_family.values())


async def system_resolver(host: str) -> Sequence[str]:
    """The addresses that the operating system gives for `host`.

    In a daemon thread of its own, not in the event loop's pool: that pool is joined at the end, and a name server that
    does not answer would keep the server from stopping.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Sequence[str]] = loop.create_future()

    def settle(addresses: Sequence[str], error: OSError | None) -> None:
        if answer.done():  # Nobody waits any more.
            return
        if error is None:
            answer.set_result(addresses)
        else:
            answer.set_exception(error)

    def ask() -> None:
        addresses: Sequence[str] = ()
        failure: OSError | None = None
        try:
            found = socket.getaddrinfo(host, HTTPS_PORT, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
            addresses = [str(entry[4][0]) for entry in found]
        except OSError as error:
            failure = error
        except UnicodeError:  # A name that has no IDNA form.
            failure = socket.gaierror("no such name")
        with suppress(RuntimeError):  # The loop has been closed meanwhile.
            loop.call_soon_threadsafe(settle, addresses, failure)

    threading.Thread(target=ask, name="outbound-name", daemon=True).start()
    return await answer
