"""What the page of a model says of its cache: which layers keep what, and what that comes to."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf

from app.calc.broadcast import scalar
from app.calc.kv_cache import CacheTerm
from app.holding import CONTEXT_TOKENS, KV_CACHE
from app.model_facts import ModelFacts


@dataclass(frozen=True, slots=True)
class KeptRow:
    """Like layers that keep like rows: elements a row and layer, bytes that a token adds, bytes held at 8,192."""

    label: str
    layers: int
    elements: int
    working: str
    positions: str
    token_bytes: float
    held_bytes: float


@dataclass(frozen=True, slots=True)
class StateRow:
    """Like layers that keep a state: its elements a layer, in their own type, whatever the context."""

    label: str
    layers: int
    elements: int
    dtype: str
    held_bytes: float


def kept_rows(facts: ModelFacts) -> list[KeptRow]:
    """The rows that grow with the context, like layers together."""
    return [_kept(term) for term in facts.cache_shape.terms]


def state_rows(facts: ModelFacts) -> Sequence[StateRow]:
    """The states that do not grow."""
    return [
        StateRow(state.label, state.layers, state.elements, state.dtype.value, state.bytes)
        for state in facts.cache_shape.states
    ]


def _kept(term: CacheTerm) -> KeptRow:
    reach = term.span.saturates_at
    positions = "every position" if isinf(reach) else f"at most {reach:,.0f} positions"
    if term.compression > 1:
        positions = f"one row for {term.compression} positions"
    return KeptRow(
        label=term.label,
        layers=term.layers,
        elements=term.width,
        working=_working(term),
        positions=positions,
        token_bytes=term.elements_per_token * KV_CACHE.bytes,
        held_bytes=scalar(term.elements(CONTEXT_TOKENS)) * KV_CACHE.bytes,
    )


def _working(term: CacheTerm) -> str:
    """How the elements of one layer's row come about: the formula, and the values of its symbols; empty for a width."""
    if len(term.working.terms) < 2:
        return ""
    formula = term.working.formula.replace("{L} × ", "").replace("{L}·", "")
    values = ", ".join(f"{symbol}\u00a0=\u00a0{value:,}" for symbol, _, value in term.working.terms)
    return f"{formula}: {values}"
