"""Which positions a query attends to, and which a layer keeps: everything, a window, a chunk, or a selection."""

from dataclasses import dataclass
from math import inf
from typing import Protocol

from app.calc.broadcast import Quantity, floor, maximum, minimum


class Span(Protocol):
    """Counts of positions; every method takes numbers or arrays of tokens."""

    @property
    def saturates_at(self) -> float:
        """Context from which the layer keeps no more; infinite where it keeps everything."""
        ...

    def kept(self, context: Quantity) -> Quantity:
        """Positions in the cache at most, once `context` tokens have passed."""
        ...

    def visible(self, context: Quantity) -> Quantity:
        """Positions that the newest of `context` tokens attends to, itself included."""
        ...

    def pairs(self, tokens: Quantity) -> Quantity:
        """Query-key pairs of the first `tokens` positions of a causal pass."""
        ...

    def reach(self, cached: Quantity) -> Quantity:
        """Of `cached` positions, those that a prefill after them cannot avoid reading."""
        ...


@dataclass(frozen=True, slots=True)
class Full:
    """Every position before, and itself: n tokens make n(n+1)/2 pairs. Worked number: 1,000 make 500,500."""

    @property
    def saturates_at(self) -> float:
        return inf

    def kept(self, context: Quantity) -> Quantity:
        return context

    def visible(self, context: Quantity) -> Quantity:
        return context

    def pairs(self, tokens: Quantity) -> Quantity:
        """n(n+1)/2."""
        return tokens * (tokens + 1) / 2

    def reach(self, cached: Quantity) -> Quantity:
        return cached


@dataclass(frozen=True, slots=True)
class Window:
    """The last `tokens` positions. Worked number: 1,000 tokens in a window of 128 make 119,872 pairs."""

    tokens: int

    @property
    def saturates_at(self) -> float:
        return float(self.tokens)

    def kept(self, context: Quantity) -> Quantity:
        return minimum(context, float(self.tokens))

    def visible(self, context: Quantity) -> Quantity:
        return minimum(context, float(self.tokens))

    def pairs(self, tokens: Quantity) -> Quantity:
        """n(n+1)/2 less the pairs that lie outside the window."""
        beyond = maximum(0.0, tokens - float(self.tokens))
        return tokens * (tokens + 1) / 2 - beyond * (beyond + 1) / 2

    def reach(self, cached: Quantity) -> Quantity:
        """The window, less the place of the new token itself."""
        return minimum(cached, float(self.tokens - 1))


@dataclass(frozen=True, slots=True)
class Chunk:
    """The positions of the query's own chunk of `tokens`, up to itself (Llama 4).

    A chunk fills and starts again, so a layer reads between 1 and `tokens` positions; it keeps room for all of them.
    """

    tokens: int

    @property
    def saturates_at(self) -> float:
        return float(self.tokens)

    def kept(self, context: Quantity) -> Quantity:
        """min(context, chunk): the most that is ever in it."""
        return minimum(context, float(self.tokens))

    def visible(self, context: Quantity) -> Quantity:
        """The newest token's place in its chunk, counted from 1 (a half token just past a boundary is the first)."""
        return maximum(minimum(context, 1.0), context - self.tokens * self._full_chunks(context))

    def pairs(self, tokens: Quantity) -> Quantity:
        """Whole chunks of c(c+1)/2 pairs, and the one that is being filled."""
        whole = floor(tokens / self.tokens)
        rest = tokens - whole * self.tokens
        return whole * (self.tokens * (self.tokens + 1) / 2) + rest * (rest + 1) / 2

    def reach(self, cached: Quantity) -> Quantity:
        """What is in the chunk that the first new token falls into."""
        return cached - self.tokens * floor(cached / self.tokens)

    def _full_chunks(self, context: Quantity) -> Quantity:
        """Chunks that were complete before the newest token; the last place of a chunk still belongs to it."""
        return maximum(0.0, -floor(-context / self.tokens) - 1)


@dataclass(frozen=True, slots=True)
class Selection:
    """The `top` positions that an indexer chooses; all are kept, because any may be chosen next."""

    top: int

    @property
    def saturates_at(self) -> float:
        return inf

    def kept(self, context: Quantity) -> Quantity:
        return context

    def visible(self, context: Quantity) -> Quantity:
        return minimum(context, float(self.top))

    def pairs(self, tokens: Quantity) -> Quantity:
        """As many as a window of `top` has."""
        return Window(self.top).pairs(tokens)

    def reach(self, cached: Quantity) -> Quantity:
        """One selection, less the place of the new token itself: new tokens may all choose the same positions."""
        return minimum(cached, float(self.top - 1))


FULL = Full()
