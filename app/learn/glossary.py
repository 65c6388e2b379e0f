"""The words of the field, one definition each, for every page that needs them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).resolve().parent / "data" / "glossary.toml"


@dataclass(frozen=True, slots=True)
class Word:
    """A word with what it means. `chapter` is where the lesson explains it; `short` names what letters stand for."""

    id: str
    word: str
    meaning: str
    chapter: str
    short: str = ""


@lru_cache(maxsize=1)
def load_glossary(file: Path = FILE) -> Mapping[str, Word]:
    """Every word by id, in the order of the alphabet.

    Raises:
        ValueError: a word is defined twice.
    """
    rows = [Word(**row) for row in tomllib.loads(file.read_text(encoding="utf-8"))["word"]]
    words = {word.id: word for word in sorted(rows, key=lambda word: word.word.casefold())}
    if len(words) != len(rows):
        raise ValueError("a word is defined twice")
    return words
