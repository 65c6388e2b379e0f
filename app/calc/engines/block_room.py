"""What a pool of blocks holds: sequences, tokens as the log prints them, and the longest sequence."""

import math
from dataclasses import dataclass, replace

from app.calc.deployment_limits import MOST_CONCURRENT, MOST_TOKENS
from app.calc.engines.vllm_blocks import BlockGroups, BlockPlan
from app.calc.explanation import Term, Working


@dataclass(frozen=True, slots=True)
class BlockRoom:
    """A cache plan of blocks; `plan` None where the GPU keeps nothing of a sequence."""

    plan: BlockPlan | None
    prints_concurrency: bool

    @property
    def unit_bytes(self) -> float:
        """A block."""
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
