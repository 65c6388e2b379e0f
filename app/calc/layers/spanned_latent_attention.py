"""MLA that sees a window or a chunk only: what a windowed layer becomes when its heads share a latent.

No published model has it; `app.calc.attention_variants` makes it of a grouped layer to compare the two.
"""

from dataclasses import dataclass, replace
from typing import Self

from app.calc.layers.latent_attention import LatentAttention
from app.calc.layers.parts import CacheRows, Run, State, Weights, Work
from app.calc.layers.span import Chunk, Window


@dataclass(frozen=True, slots=True)
class SpannedLatentAttention:
    """`latent` over `span` in place of everything."""

    latent: LatentAttention
    span: Window | Chunk

    @property
    def label(self) -> str:
        """MLA, and what a layer does not see."""
        kind = "window" if isinstance(self.span, Window) else "chunks"
        return f"MLA, {kind} of {self.span.tokens:,}"

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """Those of the latent attention."""
        return self.latent.weights(hidden_size)

    def cache(self) -> tuple[CacheRows, ...]:
        """One latent row a position, as long as the span keeps it."""
        return tuple(replace(row, span=self.span) for row in self.latent.cache())

    def state(self) -> tuple[State, ...]:
        """None."""
        return ()

    def work(self, run: Run) -> tuple[Work, ...]:
        """Scores and values over the span."""
        return self.latent.attend(run, self.span)

    def split(self, ranks: int) -> Self:
        """The latent attention is divided."""
        return replace(self, latent=self.latent.split(ranks))
