"""vLLM's division of a cache pool into blocks, for one kind of layers and for several (hybrid models).

All layers of a group share a block; where a model has several groups, a block of any group has the same bytes, so that
one pool serves them all. Source: the planner's rules as start-up logs show them, docs/memory.md.

What a pool of blocks holds: sequences, tokens as the log prints them, and the longest sequence.
"""

import math
from dataclasses import dataclass, replace

from app.calc.derivation import Term, Working
from app.calc.memory.cache import CachedLayers, CachedRows
from app.calc.memory.engines.parts import MOST_CONCURRENT, MOST_TOKENS

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


@dataclass(frozen=True, slots=True)
class BlockRoom:
    """A cache plan of blocks; `plan` None where the GPU keeps nothing of a sequence."""

    plan: BlockPlan | None
    prints_concurrency: bool

    @property
    def unit_bytes(self) -> float:
        return self.plan.block_bytes if self.plan else 0.0

    def blocks(self, pool_bytes: float) -> int:
        """Whole blocks of the pool."""
        return self.plan.blocks(pool_bytes) if self.plan else 0

    def sequence_bytes(self, tokens: int) -> float:
        """Blocks of a sequence, in bytes."""
        return self.plan.blocks_of(tokens) * self.plan.block_bytes if self.plan else 0.0

    def fitting(self, pool_bytes: float, tokens: int) -> int:
        """⌊blocks ÷ blocks of one⌋."""
        if self.plan is None:
            return MOST_CONCURRENT
        return self.plan.blocks(pool_bytes) // max(1, self.plan.blocks_of(tokens))

    def pool_tokens(self, pool_bytes: float, max_model_len: int) -> int:
        """The token line of the release."""
        if self.prints_concurrency:
            return self.concurrency_tokens_line(pool_bytes, max_model_len)
        return self.block_tokens_line(pool_bytes)

    def block_tokens_line(self, pool_bytes: float) -> int:
        """Old form: blocks ÷ groups × the smallest block. Of one group it is simply every token of the pool."""
        if self.plan is None:
            return 0
        return self.plan.blocks(pool_bytes) // self.plan.groups * self.plan.smallest_block_tokens

    def concurrency_tokens_line(self, pool_bytes: float, max_model_len: int) -> int:
        """New form: concurrency × longest sequence where there are several groups; with one group as before."""
        if self.plan is None:
            return 0
        if not self.plan.is_hybrid:
            return self.block_tokens_line(pool_bytes)
        return int(self.concurrency(pool_bytes, max_model_len) * max_model_len)

    def concurrency(self, pool_bytes: float, max_model_len: int) -> float:
        """Longest sequences at a time, with the fraction that the log prints."""
        if self.plan is None:
            return float(MOST_CONCURRENT)
        return self.plan.blocks(pool_bytes) / max(1, self.plan.blocks_of(max_model_len))

    def longest(self, pool_bytes: float, sequences: int) -> int | None:
        """The most tokens that each of `sequences` can have; None where no length needs more than it gets."""
        if self.plan is None:
            return None
        share = self.blocks(pool_bytes) // max(1, sequences)
        if self.plan.blocks_of(MOST_TOKENS) <= share:
            return None
        if self._is_plain:
            return share * self.plan.smallest_block_tokens
        low, high = 0, MOST_TOKENS
        while high - low > 1:
            middle = (low + high) // 2
            if self.plan.blocks_of(middle) <= share:
                low = middle
            else:
                high = middle
        return low if low and share and math.isfinite(self.plan.block_bytes) else 0

    def explain_sequence(self, tokens: int) -> Working | None:
        """(groups × blocks of each kind) × bytes of a block."""
        if self.plan is None:
            return None
        parts, terms = self._demand(tokens)
        block = Term("b", "bytes of a block, all layers of a group", self.plan.block_bytes, "B")
        return Working(f"({' + '.join(parts)}) × b", (*terms, block))

    def explain_fitting(self, pool_bytes: float, tokens: int) -> Working:
        """⌊blocks of the pool ÷ blocks of a sequence⌋."""
        if self.plan is None:
            return _nothing(MOST_CONCURRENT)
        demand = Term("D", "blocks of one sequence", max(1, self.plan.blocks_of(tokens)), "")
        return Working("⌊⌊pool ÷ b⌋ ÷ D⌋", (*self._pool(pool_bytes), demand))

    def explain_tokens(self, pool_bytes: float, max_model_len: int) -> Working:
        """Every token of the pool; of several groups the release's own line."""
        if self.plan is None:
            return _nothing(0)
        plan, pool = self.plan, self._pool(pool_bytes)
        size = Term("n_b", "tokens of a block", plan.smallest_block_tokens, "tokens")
        if not plan.is_hybrid:
            return Working("⌊pool ÷ b⌋ × n_b", (*pool, size))
        if not self.prints_concurrency:
            groups = Term("g", "groups of layers", plan.groups, "")
            return Working("⌊⌊pool ÷ b⌋ ÷ g⌋ × n_b", (*pool, groups, size))
        demand = Term("D", "blocks of the longest sequence", max(1, plan.blocks_of(max_model_len)), "")
        length = Term("L", "longest sequence the engine serves", max_model_len, "tokens")
        return Working("⌊⌊pool ÷ b⌋ ÷ D × L⌋", (*pool, demand, length))

    def explain_longest(self, pool_bytes: float, sequences: int) -> Working:
        """An even share of the blocks; of several groups found by halving."""
        if self.plan is None:
            return _nothing(0)
        users = Term("B", "sequences that share it", max(1, sequences), "")
        if self._is_plain:
            size = Term("n_b", "tokens of a block", self.plan.smallest_block_tokens, "tokens")
            return Working("min(⌊⌊pool ÷ b⌋ ÷ B⌋ × n_b, c_most)", (*self._pool(pool_bytes), users, size, _MOST))
        found = self.longest(pool_bytes, sequences) or 0
        label = f"longest context whose blocks, {max(1, sequences):,} times, stay within {self.blocks(pool_bytes):,}"
        return Working("c", (Term("c", label, found, "tokens"),))

    @property
    def _is_plain(self) -> bool:
        """True where there is one group that keeps every token: its blocks grow evenly with the sequence."""
        if self.plan is None or self.plan.is_hybrid:
            return False
        (kind,) = self.plan.kinds
        return kind.window is None and not kind.is_state

    def _pool(self, pool_bytes: float) -> tuple[Term, Term]:
        size = self.plan.block_bytes if self.plan else 0.0
        return (
            Term("pool", "cache pool", max(0.0, pool_bytes), "B"),
            Term("b", "bytes of a block, all layers of a group", size, "B"),
        )

    def _demand(self, tokens: int) -> tuple[list[str], list[Term]]:
        plan = self.plan
        parts: list[str] = []
        terms: list[Term] = []
        for place, kind in enumerate(plan.kinds if plan else (), 1):
            mark = "" if plan and len(plan.kinds) == 1 else f"_{place}"
            count, own = _kind_working(kind, mark, tokens, plan.step_tokens if plan else 0, plan.states if plan else 0)
            groups = f"g{mark} × " if kind.groups > 1 else ""
            if groups:
                terms.append(Term(f"g{mark}", f"groups of {kind.label}", kind.groups, ""))
            ranks = plan.context_ranks if plan else 1
            if ranks > 1 and kind.window is None and not kind.is_state:
                own = [replace(term, value=term.value * ranks) if term.symbol == f"n{mark}" else term for term in own]
            parts.append(f"{groups}{count}")
            terms += own
        return parts, terms


_MOST = Term("c_most", "longest context that is looked at", MOST_TOKENS, "tokens")


def _nothing(value: float) -> Working:
    return Working("c", (Term("c", "no limit: the model keeps nothing of a sequence", value, ""),))


def _kind_working(kind: BlockGroups, mark: str, tokens: int, step: int, states: int) -> tuple[str, list[Term]]:
    """The blocks that one group of a kind needs, in symbols."""
    if kind.is_state:
        return f"s{mark}", [Term(f"s{mark}", f"blocks of a sequence's {kind.label}", states, "")]
    size = Term(f"n{mark}", "tokens of a block", kind.block_tokens, "tokens")
    if kind.window is None:
        return f"⌈c{mark} ÷ n{mark}⌉", [Term(f"c{mark}", "tokens of the sequence", tokens, "tokens"), size]
    reach = kind.window + step if kind.is_chunk else kind.window - 1 + step
    what = "chunk and one step" if kind.is_chunk else "window before the token, and one step"
    kept = Term(f"c{mark}", f"tokens kept: {what}, or the sequence", min(reach, tokens), "tokens")
    return f"⌈c{mark} ÷ n{mark}⌉" if kind.is_chunk else f"(⌈c{mark} ÷ n{mark}⌉ + 1)", [kept, size]
