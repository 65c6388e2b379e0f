"""Index-sparse MLA (DSA): every latent is stored, an indexer chooses, and attention reads only the chosen.

Source: DeepSeek-V3.2, technical report of 2025, section 2. GLM-5.2 computes an index in every fourth layer only; the
layers between reuse it and store no index keys.
"""

from dataclasses import dataclass, replace
from typing import Self

from app.calc.layers.indexer import Indexer
from app.calc.layers.latent_attention import LatentAttention
from app.calc.layers.parts import CacheRows, Run, State, Weights, Work
from app.calc.layers.span import Selection


@dataclass(frozen=True, slots=True)
class SparseLatentAttention:
    """MLA over the `top` positions that the indexer of this layer, or (None) of one before it, has chosen."""

    latent: LatentAttention
    top: int
    indexer: Indexer | None = None

    @property
    def label(self) -> str:
        """MLA over a selection, and whether the layer makes it."""
        return f"MLA, best {self.top:,}" if self.indexer else f"MLA, best {self.top:,} of a neighbour's index"

    def weights(self, hidden_size: int) -> tuple[Weights, ...]:
        """Those of the latent attention, and of the indexer where there is one."""
        if self.indexer is None:
            return self.latent.weights(hidden_size)
        query_input = self.latent.q_rank or hidden_size
        return (*self.latent.weights(hidden_size), *self.indexer.weights(hidden_size, query_input))

    def cache(self) -> tuple[CacheRows, ...]:
        """The latent of every position; and its index key."""
        return (*self.latent.cache(), *(self.indexer.cache() if self.indexer else ()))

    def state(self) -> tuple[State, ...]:
        """None."""
        return ()

    def work(self, run: Run) -> tuple[Work, ...]:
        """The index over everything, attention over the selection."""
        index = self.indexer.work(run, self.top) if self.indexer else ()
        return (*index, *self.latent.attend(run, Selection(self.top)))

    def split(self, ranks: int) -> Self:
        """The latent attention is divided; the indexer is on every GPU."""
        return replace(self, latent=self.latent.split(ranks))
