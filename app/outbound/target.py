"""Which addresses may be fetched: https, one of the allowed hosts, and nothing that two parsers could read differently.

An address is parsed once. What is checked here is what is sent: the connection is made from the parts of the Target,
never from the text again.
"""

import re
from collections.abc import Set
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from app.outbound.errors import BlockedError

HTTPS_PORT = 443
LONGEST_URL = 4_096  # a signed address of a content network has a query of a kilobyte or two

_PRINTABLE = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Target:
    """A host and a path with query, both checked."""

    host: str
    path: str

    @property
    def url(self) -> str:
        """The address as text."""
        return f"https://{self.host}{self.path}"


def parse_target(url: str, hosts: Set[str]) -> Target:
    """The target that `url` names.

    Raises:
        BlockedError: not https, not one of `hosts`, another port, a user name, or ambiguous.
    """
    _refuse_ambiguous(url)
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise BlockedError("the address cannot be parsed") from error
    if parts.scheme != "https":
        raise BlockedError("the address is not https")
    # One comparison of the whole authority: a user name, another port, a trailing dot, percent signs, brackets or a
    # number in place of the name make it something else.
    authority = parts.netloc.lower()
    host = authority.removesuffix(f":{HTTPS_PORT}")
    if host not in hosts:
        raise BlockedError("the host is not one that is allowed")
    path = parts.path or "/"
    return Target(host, f"{path}?{parts.query}" if parts.query else path)


def redirected(target: Target, location: str, hosts: Set[str]) -> Target:
    """Where `location` leads from `target`; it may be relative.

    Raises:
        BlockedError: as for any other address.
    """
    _refuse_ambiguous(location)
    if location.startswith("//"):
        return parse_target(f"https:{location}", hosts)
    try:
        has_scheme = bool(urlsplit(location).scheme)
    except ValueError as error:
        raise BlockedError("the address of a redirect cannot be parsed") from error
    # What has a scheme is not joined: joining would mend what is missing ("https:///x"), each parser in its own way.
    return parse_target(location if has_scheme else urljoin(target.url, location), hosts)


def _refuse_ambiguous(url: str) -> None:
    """What parsers disagree about: other characters than visible ASCII (tabs, line ends, IDN dots), backslashes."""
    if len(url) > LONGEST_URL:
        raise BlockedError("the address is too long")
    if not _PRINTABLE.fullmatch(url) or "\\" in url:
        raise BlockedError("the address has characters that it may not have")
