import hashlib
import string
from collections import Counter

import pytest

from app.store.links import ALPHABET, TOKEN_CHARS, digest, new_token, parse_token, same_token

GOOD = "0123456789abcdefghjkmnpqrs"


def test_token_has_at_least_128_bits_and_needs_no_quoting() -> None:
    assert len(new_token()) == TOKEN_CHARS
    assert 2 ** (5 * TOKEN_CHARS) == len(ALPHABET) ** TOKEN_CHARS >= 2**128
    assert set(ALPHABET) <= set(string.ascii_lowercase + string.digits)


def test_tokens_use_every_sign_equally_and_never_repeat() -> None:
    tokens = [new_token() for _ in range(2_000)]
    assert len(set(tokens)) == len(tokens)
    counts = Counter("".join(tokens))
    mean = len(tokens) * TOKEN_CHARS / len(ALPHABET)  # 1,625, standard deviation 40
    assert set(counts) == set(ALPHABET)
    assert all(abs(count - mean) < 8 * 40 for count in counts.values())


def test_parsed_token_is_its_sha256() -> None:
    assert parse_token(GOOD) == digest(GOOD) == hashlib.sha256(GOOD.encode()).digest()
    assert len(digest(GOOD)) == 32


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        ":slug",
        "%2e%2e",
        "../" * 9,
        GOOD[:-1],
        GOOD + "0",
        GOOD + "\n",
        GOOD.upper(),
        GOOD[:-1] + "\0",
        GOOD[:-1] + "-",
        GOOD[:-1] + "i",
        GOOD[:-1] + "%",
        GOOD[:-1] + "٣",  # a digit, but not one of ours
        GOOD[:-1] + "\ud800",
        " " + GOOD[1:],
        "'; DROP TABLE configuratio",
        "a" * 1_048_576,
        "\0" * TOKEN_CHARS,
    ],
)
def test_malformed_token_is_nothing_to_look_up(text: str) -> None:
    assert parse_token(text) is None
    assert not same_token(text, digest(GOOD))


def test_only_the_same_token_is_the_same() -> None:
    assert same_token(GOOD, digest(GOOD))
    assert not same_token(new_token(), digest(GOOD))
