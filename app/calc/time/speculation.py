"""Speculative decoding: a cheap drafter guesses k tokens, and the model checks all of them in one step.

With each guess accepted at a rate α, independently and only while all before it were, a step gives
1 + α + … + α^k = (1 − α^(k+1)) ÷ (1 − α) tokens: the last one is always the model's own.
Source: Leviathan, Kalman, Matias, "Fast inference from transformers via speculative decoding", ICML 2023, equation 1.
Limits: acceptance depends on the text and on the drafter; a rate that is the same at every place is an idealisation,
and a length measured in production is the better input.
"""

from dataclasses import dataclass
from enum import StrEnum

from app.calc.broadcast import Quantity
from app.calc.memory.engines.parts import Draft

_HALVINGS = 60


class Method(StrEnum):
    """Who guesses."""

    DRAFT_MODEL = "draft_model"
    EAGLE = "eagle"
    MTP = "mtp"
    NGRAM = "ngram"


METHOD_WORDS = {
    Method.DRAFT_MODEL: "a draft model",
    Method.EAGLE: "an EAGLE-3 head",
    Method.MTP: "the model’s own multi-token-prediction layers",
    Method.NGRAM: "n-grams of the text so far",
}


@dataclass(frozen=True, slots=True)
class Speculation:
    """`draft_tokens` guessed in each step by `drafter` (None where guessing costs no GPU time), one after the other.

    `tokens_per_step` are those that a step gives in expectation, between 1 and `draft_tokens` + 1.
    """

    method: Method
    draft_tokens: int
    acceptance_rate: float
    tokens_per_step: float
    drafter: Draft | None = None

    @property
    def positions(self) -> int:
        """Positions of a sequence that the model works on in one step: the guesses, and the token before them."""
        return self.draft_tokens + 1

    @property
    def is_by_own_layers(self) -> bool:
        """True where the model's own layers guess: they are split as its others are, experts too."""
        return self.method is Method.MTP


def expected_tokens(acceptance_rate: Quantity, draft_tokens: int) -> Quantity:
    """Tokens of a step: Σ α^i for i from 0 to k.

    Worked numbers: 0.8 and 4 give 3.3616; 0 gives 1, 1 gives k + 1.
    """
    total: Quantity = 1.0
    for _ in range(draft_tokens):
        total = 1.0 + acceptance_rate * total
    return total


def acceptance_of(tokens_per_step: float, draft_tokens: int) -> float:
    """The rate at which k guesses give so many tokens a step; the inverse of `expected_tokens`, found by halving.

    Args:
        tokens_per_step: between 1 and k + 1.
        draft_tokens: k.

    Worked number: 2.8 tokens of 3 guesses need 0.7655 each: 1 + 0.7655 + 0.586 + 0.449.
    """
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if float(expected_tokens(middle, draft_tokens)) < tokens_per_step:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def speculation_of(
    method: Method, draft_tokens: int, rate: float | None, length: float | None, drafter: Draft | None
) -> Speculation | None:
    """Speculation with an acceptance from a `rate` or a measured `length`; None where neither is known."""
    if length is not None:
        return Speculation(method, draft_tokens, acceptance_of(length, draft_tokens), length, drafter)
    if rate is not None:
        return Speculation(method, draft_tokens, rate, float(expected_tokens(rate, draft_tokens)), drafter)
    return None
