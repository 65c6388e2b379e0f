"""Secrets of a saved link: the slug that shows it and the edit token that changes it. Only digests are stored."""

import hashlib
import hmac
import re
import secrets

# Crockford's base 32 in lower case: no look-alikes, a double click selects the whole token, and no chat program cuts a
# trailing "-" or reads "_" as emphasis. No URL literal (":slug", "..", "new") can be a token.
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
TOKEN_CHARS = 26  # 26 × 5 bits = 130 bits
DIGEST_BYTES = 32

_TOKEN = re.compile(f"[{ALPHABET}]{{{TOKEN_CHARS}}}")


def new_token() -> str:
    """A fresh secret of 130 bits from the system's random source, 26 characters that are safe in a URL."""
    return "".join(secrets.choice(ALPHABET) for _ in range(TOKEN_CHARS))


def digest(token: str) -> bytes:
    """The 32 bytes of SHA-256 under which a token is stored.

    A bare hash is enough: nobody can try 2¹³⁰ tokens, so there is nothing for a salt or a slow hash to protect.
    """
    return hashlib.sha256(token.encode("ascii")).digest()


def parse_token(text: str) -> bytes | None:
    """The digest to look up, or None where `text` cannot be a token and the database need not be asked.

    The length is compared first, so a megabyte of text costs nothing.
    """
    if len(text) != TOKEN_CHARS or _TOKEN.fullmatch(text) is None:
        return None
    return digest(text)


def same_token(text: str, stored: bytes) -> bool:
    """Whether `text` is the token with this stored digest, compared in constant time."""
    offered = parse_token(text)
    return offered is not None and hmac.compare_digest(offered, stored)
