"""The lightning indexer: small heads that score every position, so that attention reads only the best.

Source: DeepSeek-V3.2, technical report of 2025, section 2.1; GLM-5 and MiniMax-M3 have one of their own width.
"""

from dataclasses import dataclass

from app.calc.broadcast import indicator, maximum, minimum
from app.calc.layers.parts import (
    FLOPS_PER_MULTIPLY_ADD,
    CacheRows,
    OperatorName,
    Run,
    WeightGroup,
    Weights,
    Work,
    matrix,
    vector,
)
from app.calc.layers.span import FULL


@dataclass(frozen=True, slots=True)
class Indexer:
    """`heads` queries of `dim` against one key of `dim` a position.

    `weighs_heads` adds a projection of the hidden state to one weight a head.
    """

    heads: int
    dim: int
    weighs_heads: bool = True

    def weights(self, hidden_size: int, query_input: int) -> tuple[Weights, ...]:
        """Queries from `query_input` (the query latent, or the hidden state), keys and weights from the hidden state.

        Worked number: DeepSeek-V3.2 has 1,536 × 64 × 128 + 7,168 × 128 + 256 + 7,168 × 64 = 13,959,424 a layer.
        """
        params = query_input * self.heads * self.dim + hidden_size * self.dim
        if self.weighs_heads:
            params += hidden_size * self.heads
        return (
            matrix(OperatorName.INDEXER, WeightGroup.ATTENTION, params),
            *vector(OperatorName.INDEXER, WeightGroup.ATTENTION, 2 * self.dim),
        )

    def cache(self) -> tuple[CacheRows, ...]:
        """A key of `dim` for every position; it is cache too."""
        return (CacheRows("index keys", self.dim, FULL),)

    def work(self, run: Run, top: int) -> tuple[Work, ...]:
        """Every position scored: 2·heads·dim a pair, every key read; nothing for queries that may see all anyway."""
        context, is_needed = run.context_tokens, indicator(run.context_tokens > top)
        if run.is_decode:
            pairs = run.pairs(FULL) * is_needed
        else:
            unscored = maximum(run.cached_tokens, minimum(context, float(top)))
            pairs = run.sequences * (FULL.pairs(context) - FULL.pairs(unscored))
        flops = FLOPS_PER_MULTIPLY_ADD * self.heads * self.dim * pairs
        return (Work(OperatorName.INDEXER, flops, self.dim * run.rows_read(FULL) * is_needed),)
