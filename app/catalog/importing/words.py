"""Lists of words that are data: keys without meaning for sizes, and model types that are no decoders."""

import tomllib
from pathlib import Path

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def words(name: str) -> frozenset[str]:
    """The words of one list."""
    return frozenset(_TEXTS[name].split())
