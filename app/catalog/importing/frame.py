"""What every decoder has: width, depth, vocabulary, the context it was made for, and whether the head is its own."""

from dataclasses import dataclass

from app.catalog.importing import limits, spellings
from app.catalog.importing.keys import Keys


@dataclass(frozen=True, slots=True)
class Switch:
    """A key that says yes or no, and what the model's class takes where it is absent."""

    names: tuple[str, ...]
    default: bool = False

    def read(self, keys: Keys) -> bool:
        """What the key says."""
        return keys.flag(self.names[0], self.names, default=self.default)


Choice = bool | Switch
"""Something that a family always or never has, or that a key decides."""


def chosen(keys: Keys, choice: Choice) -> bool:
    """The choice made."""
    return choice.read(keys) if isinstance(choice, Switch) else choice


@dataclass(frozen=True, slots=True)
class Frame:
    """Sizes of the whole model."""

    hidden_size: int
    n_layers: int
    vocab_size: int
    max_position: int | None
    tied_embeddings: bool


def read_frame(keys: Keys, *, tied: bool, n_layers: int | None = None) -> Frame:
    """The frame; `tied` is the class's default, `n_layers` the depth where no plain number gives it.

    Raises:
        ConfigError: a size is missing or impossible.
    """
    hidden = keys.whole("hidden_size", spellings.HIDDEN, limits.HIDDEN)
    if n_layers is None:
        n_layers = keys.whole("n_layers", spellings.LAYERS, limits.LAYERS)
    vocabulary = keys.whole("vocab_size", spellings.VOCABULARY, limits.VOCABULARY)
    context = _context(keys)
    is_tied = keys.flag("tied_embeddings", ("tie_embedding", "tie_word_embeddings", "tie_embeddings"), default=tied)
    return Frame(hidden, n_layers, vocabulary, context, is_tied)


def _context(keys: Keys) -> int | None:
    """The first of the spellings: several are given with different meanings in one file, so they may differ."""
    for name in spellings.CONTEXT:
        if keys.has(name):
            return keys.maybe_whole("max_position", (name,), limits.POSITIONS)
    return keys.maybe_whole("max_position", spellings.CONTEXT, limits.POSITIONS)
