"""vLLM's division of a cache pool into blocks, for one kind of layers and for several (hybrid models).

All layers of a group share a block; where a model has several groups, a block of any group has the same bytes, so that
one pool serves them all. Source: the planner's rules as start-up logs show them, docs/memory.md.
"""

import math
from dataclasses import dataclass

from app.calc.cached_layers import CachedLayers, CachedRows

EQUAL_ENOUGH = 1.5
"""Counts of two kinds that differ by less than this factor are padded to the larger one."""


@dataclass(frozen=True, slots=True)
class BlockGroups:
    """`groups` groups of one kind of layer, of which a block of each holds `block_tokens` tokens.

    `window` None keeps everything; a state has no tokens (`is_state`): `states` blocks serve a sequence for good.
    `padding_layers` complete the last group.
    """

    label: str
    groups: int
    block_tokens: int
    window: int | None = None
    is_chunk: bool = False
    is_state: bool = False
    padding_layers: int = 0


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """Blocks of `block_bytes` for `kinds` of groups, drawn from one pool.

    `step_tokens` are the tokens of one prefill step, which a window must hold beside itself. `states` are the blocks
    that a recurrent group keeps for one sequence. `context_ranks` share out the tokens of what keeps everything.
    """

    block_bytes: float
    kinds: tuple[BlockGroups, ...]
    step_tokens: int
    states: int = 1
    context_ranks: int = 1
    state_padding: float = 0.0

    @property
    def groups(self) -> int:
        """Groups of all kinds."""
        return sum(kind.groups for kind in self.kinds)

    @property
    def is_hybrid(self) -> bool:
        """True where more than one group draws from the pool."""
        return self.groups > 1

    @property
    def smallest_block_tokens(self) -> int:
        """The block that the old token line multiplies by; where nothing has tokens, 1."""
        return min((kind.block_tokens for kind in self.kinds if not kind.is_state), default=1) * self.context_ranks

    def blocks(self, pool_bytes: float) -> int:
        """Whole blocks of a pool."""
        return math.floor(pool_bytes / self.block_bytes) if self.block_bytes and pool_bytes > 0 else 0

    def blocks_of(self, tokens: int) -> int:
        """Blocks that a sequence of `tokens` needs at most, all groups together.

        Everything: ⌈tokens ÷ block⌉. A window: ⌈min(window − 1 + step, tokens) ÷ block⌉ + 1. A state: as many as the
        engine keeps. Worked number: 131,072 tokens of Qwen3.6-35B-A3B in fp8 need 63 + 3 × 2 = 69.
        """
        total = 0
        for kind in self.kinds:
            total += kind.groups * self._of_kind(kind, tokens)
        return total

    def _of_kind(self, kind: BlockGroups, tokens: int) -> int:
        if kind.is_state:
            return self.states
        if kind.window is None:
            return -(-tokens // (kind.block_tokens * self.context_ranks))
        if kind.is_chunk:
            return -(-min(kind.window + self.step_tokens, tokens) // kind.block_tokens)
        return -(-min(kind.window - 1 + self.step_tokens, tokens) // kind.block_tokens) + 1


def plan_blocks(
    layers: CachedLayers,
    *,
    block_tokens: int,
    step_tokens: int,
    state_alignment: int = 16,
    states: int = 1,
    context_ranks: int = 1,
) -> BlockPlan | None:
    """The plan for what one GPU keeps; None where it keeps nothing.

    Args:
        layers: rows and states of the GPU's layers.
        block_tokens: tokens of a block where nothing makes it larger.
        step_tokens: tokens of one prefill step.
        state_alignment: a block raised to a state's size is a multiple of so many tokens.
        states: blocks of a recurrent group for one sequence.
        context_ranks: tensor ranks that share out the tokens of a cache.
    """
    if not layers.rows and not layers.states:
        return None
    spans = {(row.window, row.is_chunk) for row in layers.rows}
    if not layers.states and len(spans) == 1:
        return _uniform(layers.rows, block_tokens, step_tokens, context_ranks)
    return _hybrid(layers, block_tokens, step_tokens, state_alignment, states, context_ranks)


def _uniform(rows: tuple[CachedRows, ...], block_tokens: int, step_tokens: int, context_ranks: int) -> BlockPlan:
    """One group: a block holds the same tokens of every layer, each at its own size."""
    first = rows[0]
    kind = BlockGroups("all layers", 1, block_tokens, first.window, first.is_chunk)
    ranks = context_ranks if first.window is None else 1
    return BlockPlan(block_tokens * sum(r.layers * r.bytes_per_token for r in rows), (kind,), step_tokens, 1, ranks)


def _hybrid(
    layers: CachedLayers, block_tokens: int, step_tokens: int, alignment: int, states: int, context_ranks: int
) -> BlockPlan:
    """Several kinds: pages of equal bytes, groups of equal size."""
    state_page = max((state.bytes for state in layers.states), default=0.0)
    widest = max((row.bytes_per_token for row in layers.rows), default=0.0)
    page, padding = block_tokens * widest, 0.0
    if state_page > page:
        aligned_tokens = -(-math.ceil(state_page / widest) // alignment) * alignment if widest else 0
        page = aligned_tokens * widest or state_page
    if state_page:
        padding = page / state_page - 1
    counts = [row.layers for row in layers.rows] + [state.layers for state in layers.states]
    size = max(counts) if max(counts) < EQUAL_ENOUGH * min(counts) else min(counts)
    kinds = [_row_kind(row, page, size) for row in layers.rows]
    for state in layers.states:
        groups = -(-state.layers // size)
        kinds.append(BlockGroups(state.label, groups, 0, is_state=True, padding_layers=groups * size - state.layers))
    return BlockPlan(page * size, tuple(kinds), step_tokens, states, context_ranks, padding)


def _row_kind(row: CachedRows, page: float, size: int) -> BlockGroups:
    """A narrower row gets a longer block, so that its page is as large as the widest one's."""
    groups = -(-row.layers // size)
    block = max(1, math.floor(page / row.bytes_per_token))
    return BlockGroups(row.label, groups, block, row.window, row.is_chunk, padding_layers=groups * size - row.layers)
