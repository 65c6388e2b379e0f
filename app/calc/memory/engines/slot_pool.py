"""What a pool of single tokens holds, as SGLang hands it out: a pool of whole layers, one of windows, one of states."""

import math
from dataclasses import dataclass

from app.calc.derivation import Term, Working
from app.calc.memory.cache import CachedLayers
from app.calc.memory.engines.parts import MOST_CONCURRENT, MOST_TOKENS

WINDOW_SHARE = 0.8
"""Tokens of the window pool for each token of the whole one."""
STATE_RATIO = 0.9
"""Bytes of the state pool for each byte of the token pool."""


@dataclass(frozen=True, slots=True)
class TokenRoom:
    """`page_tokens` are handed out at a time. Layers with a window share a pool of `WINDOW_SHARE` of the tokens.

    A model with states splits the pool 0.9 : 1 between them and the tokens.
    Source: start-up logs of SGLang 0.5: window pools of 0.8 × the full one, state pools of 0.471 to 0.476 of the whole.
    """

    layers: CachedLayers
    page_tokens: int = 1

    @property
    def _full_rate(self) -> float:
        return sum(row.layers * row.bytes_per_token for row in self.layers.rows if row.window is None)

    @property
    def _window_rate(self) -> float:
        return sum(row.layers * row.bytes_per_token for row in self.layers.rows if row.window is not None)

    @property
    def _has_window_pool(self) -> bool:
        return self._full_rate > 0 and self._window_rate > 0

    @property
    def cell_bytes(self) -> float:
        """Bytes of one token of the pool: all layers, windowed ones by their share."""
        share = WINDOW_SHARE if self._has_window_pool else 1.0
        return self._full_rate + share * self._window_rate

    @property
    def unit_bytes(self) -> float:
        return self.cell_bytes * self.page_tokens

    def token_pool_bytes(self, pool_bytes: float) -> float:
        """What of the pool is for tokens; the rest is for states."""
        return pool_bytes / (1 + STATE_RATIO) if self.layers.state_bytes and self.cell_bytes else pool_bytes

    def tokens(self, pool_bytes: float) -> int:
        """Whole pages of the token pool, in tokens."""
        if not self.cell_bytes or pool_bytes <= 0:
            return 0
        return math.floor(self.token_pool_bytes(pool_bytes) / self.unit_bytes) * self.page_tokens

    def slots(self, pool_bytes: float) -> int:
        """Sequences whose states fit; no limit where there are none."""
        if not self.layers.state_bytes:
            return MOST_CONCURRENT
        share = pool_bytes - (self.token_pool_bytes(pool_bytes) if self.cell_bytes else 0.0)
        return math.floor(max(0.0, share) / self.layers.state_bytes)

    def _tokens_of(self, tokens: int) -> int:
        """Tokens of the pool that a sequence takes; a short one may be limited by the smaller window pool."""
        if self._has_window_pool:
            window = max((row.window or 0) for row in self.layers.rows)
            tokens = max(tokens, math.ceil(min(tokens, window) / WINDOW_SHARE))
        return -(-tokens // self.page_tokens) * self.page_tokens

    def sequence_bytes(self, tokens: int) -> float:
        """What the pool loses to it: its tokens; where there are states, the scarcer of the two parts decides."""
        rows, states = self._tokens_of(tokens) * self.cell_bytes, self.layers.state_bytes
        if not states or not self.cell_bytes:
            return rows + states
        return max(rows, states / STATE_RATIO) * (1 + STATE_RATIO)

    def fitting(self, pool_bytes: float, tokens: int) -> int:
        """⌊tokens ÷ tokens of one⌋, and no more than there are slots for states."""
        if not self.cell_bytes:
            return min(MOST_CONCURRENT, self.slots(pool_bytes))
        return min(self.slots(pool_bytes), self.tokens(pool_bytes) // max(1, self._tokens_of(tokens)))

    def pool_tokens(self, pool_bytes: float, max_model_len: int) -> int:
        """`max_total_num_tokens`."""
        return self.tokens(pool_bytes)

    def longest(self, pool_bytes: float, sequences: int) -> int | None:
        """An even share of the pool, in whole pages."""
        if sequences > self.slots(pool_bytes):
            return 0
        if not self.cell_bytes:
            return None
        share = self.tokens(pool_bytes) // max(1, sequences) // self.page_tokens * self.page_tokens
        longest = share if self._tokens_of(share) <= share else math.floor(share * WINDOW_SHARE)
        return min(longest, MOST_TOKENS)

    def explain_sequence(self, tokens: int) -> Working | None:
        """Tokens × bytes of one; where there are states, the scarcer of the two parts of the pool decides."""
        rows = (
            Term("c", "tokens that a sequence takes, in whole pages", self._tokens_of(tokens), "tokens"),
            Term("b", "bytes of one token, all layers", self.cell_bytes, "B"),
        )
        states = Term("S", "states of one sequence", self.layers.state_bytes, "B")
        if not self.layers.state_bytes:
            return Working("c × b", rows)
        if not self.cell_bytes:
            return Working("S", (states,))
        ratio = Term("r", "state pool for each byte of the token pool", STATE_RATIO, "")
        return Working("max(c × b, S ÷ r) × (1 + r)", (*rows, states, ratio))

    def explain_fitting(self, pool_bytes: float, tokens: int) -> Working:
        """⌊tokens of the pool ÷ tokens of a sequence⌋, and no more than there are slots for states."""
        slots = Term(
            "slots",
            "sequences whose states fit" if self.layers.state_bytes else "no limit by states",
            self.slots(pool_bytes),
            "",
        )
        if not self.cell_bytes:
            most = Term("most", "most that is looked at", MOST_CONCURRENT, "")
            return Working("min(slots, most)", (slots, most))
        total = Term("T", "tokens of the pool", self.tokens(pool_bytes), "tokens")
        one = Term("c", "tokens of the pool that a sequence takes", max(1, self._tokens_of(tokens)), "tokens")
        return Working("min(slots, ⌊T ÷ c⌋)", (slots, total, one))

    def explain_tokens(self, pool_bytes: float, max_model_len: int) -> Working:
        """⌊pool ÷ page⌋ × tokens of a page; where there are states they have their share first."""
        if not self.cell_bytes:
            return Working("T", (Term("T", "no token costs anything", 0, "tokens"),))
        has_states = bool(self.layers.state_bytes)
        share = (Term("r", "state pool for each byte of the token pool", STATE_RATIO, ""),) if has_states else ()
        return Working(
            "⌊pool ÷ (1 + r) ÷ b⌋ × p" if has_states else "⌊pool ÷ b⌋ × p",
            (
                Term("pool", "cache pool", max(0.0, pool_bytes), "B"),
                *share,
                Term("b", "bytes of a page, all layers", self.unit_bytes, "B"),
                Term("p", "tokens of a page", self.page_tokens, "tokens"),
            ),
        )

    def explain_longest(self, pool_bytes: float, sequences: int) -> Working:
        """An even share of the tokens."""
        found = self.longest(pool_bytes, sequences) or 0
        label = f"an even share of {self.tokens(pool_bytes):,} tokens among {max(1, sequences):,}, in whole pages"
        return Working("c", (Term("c", label, found, "tokens"),))
