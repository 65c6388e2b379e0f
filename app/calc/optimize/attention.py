"""What is kept of each position: a key and a value for every head (MHA), for groups of heads (GQA), for one (MQA), or a
latent for all (MLA).

Without it is multi-head attention; with it is what the model has, or GQA for a model that is MHA itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.calc.deployment import Deployment
from app.calc.derivation import Explanation
from app.calc.memory.cache import cache_shape
from app.calc.model.architecture import Architecture
from app.calc.model.attention_variants import AttentionVariant, VariantError, as_variant, own_variant
from app.calc.model.layers.parts import OperatorName
from app.calc.model.split import SplitError
from app.calc.optimize.optimization import (
    Asked,
    Better,
    Candidate,
    Optimization,
    Quantity,
    Row,
    Sentence,
    Size,
    Spec,
    Variants,
    refusal,
)
from app.calc.optimize.sides import (
    ROOM_COLUMN,
    TPOT_CEILING,
    TPOT_EXPECTED,
    Side,
    figures,
    less,
    loaded_weight_bytes,
    row,
    served_figures,
    shrinks,
    side_of,
    throughput_at_capacity,
    working,
)
from app.calc.optimize.stored_bytes import explain_sequence
from app.calc.quantity import significant
from app.calc.sweep import POOL, forgetting, patch_of
from app.calc.time.break_even import remodelled
from app.calc.time.phase import OperatorCost

TOKEN = Quantity(
    "token", "Cache that a token adds", "B", better=Better.LOWER, read=lambda side: token_bytes(side.deployment)
)
SEQUENCE = Quantity(
    "sequence",
    "Cache of a whole sequence",
    "B",
    better=Better.LOWER,
    read=lambda side: side.measures.memory.kv_bytes_per_sequence,
)
WEIGHTS = Quantity(
    "weights", "Weights", "B", better=Better.LOWER, read=lambda side: loaded_weight_bytes(side.deployment)
)
INTENSITY = Quantity(
    "intensity",
    "Attention in a decode step",
    "FLOP/B",
    better=Better.HIGHER,
    read=lambda side: op.intensity_flops_per_byte if (op := _attention(side)) else None,
)
COLUMNS = (
    Quantity("token", "Cache a token", "B", read=TOKEN.read),
    Quantity("sequence", "Cache of a sequence", "B", read=SEQUENCE.read),
    WEIGHTS,
    Quantity("intensity", "Attention in decode", "FLOP/B", read=INTENSITY.read),
    ROOM_COLUMN,
    TPOT_CEILING,
    TPOT_EXPECTED,
    Quantity("throughput_full", "Throughput with the room full, expected", "tokens/s", read=throughput_at_capacity),
)
_COMPARED = (AttentionVariant.GQA, AttentionVariant.MLA, AttentionVariant.MQA)


@dataclass(frozen=True, slots=True)
class _Placed:
    """One variant on the scenario's GPUs; `without_context_ranks` where DCP does not go."""

    variant: AttentionVariant
    side: Side
    without_context_ranks: bool


def _compare(asked: Asked) -> Optimization:
    """The scenario's model as MHA, and as what it is."""
    here, published = asked.deployment, asked.deployment.published_architecture
    base = published or here.architecture
    try:
        own, current = own_variant(base), own_variant(here.architecture)
    except VariantError as error:
        return _refused(str(error))
    found, reasons = _variants(asked, base)
    usual = [variant for variant in (own, *_COMPARED) if variant is not AttentionVariant.MHA and variant in found]
    is_used = current is not AttentionVariant.MHA
    if AttentionVariant.MHA not in found or not usual:
        return _refused(next(iter(reasons.values()), "There is no other attention to compare with."))
    off, on = found[AttentionVariant.MHA], found.get(current if is_used else usual[0])
    if on is None:
        return _refused(reasons[current])
    target = off if is_used else on
    wanted = None if target.variant is own and published is not None else str(target.variant)
    return Optimization(
        SPEC,
        is_used,
        "Back to multi-head attention (MHA)" if is_used else f"Keep less of each position: {_name(on)}",
        _change(here, target, wanted),
        _sentence(off.side, on.side, on.variant),
        (*figures((TOKEN, SEQUENCE, WEIGHTS, INTENSITY), off.side, on.side), *served_figures(off.side, on.side)),
        _explained(off, on),
        Variants(COLUMNS, tuple(_row(variant, found, reasons, current, own) for variant in AttentionVariant)),
    )


def _refused(reason: str) -> Optimization:
    return refusal(SPEC, reason, label="Another attention")


def _candidate(deployment: Deployment) -> Candidate | None:
    """Another model, strictly: what grouping its heads would do."""
    try:
        if own_variant(deployment.architecture) is not AttentionVariant.MHA:
            return None
        own = deployment.published_architecture or deployment.architecture
        changed = remodelled(deployment, as_variant(own, AttentionVariant.GQA))
        changed = replace(changed, published_architecture=own)
        changed.architecture.split(deployment.split)
    except (VariantError, SplitError):
        return None
    label = "Take a model with grouped attention (GQA)"
    return Candidate({"techniques": {"attention": str(AttentionVariant.GQA)}}, label, changed)


def _variants(
    asked: Asked, base: Architecture
) -> tuple[dict[AttentionVariant, _Placed], Mapping[AttentionVariant, str]]:
    """Each variant that this deployment can have, and why it cannot have the others."""
    found: dict[AttentionVariant, _Placed] = {}
    reasons: dict[AttentionVariant, str] = {}
    bare, _ = forgetting(asked.deployment, "weights", POOL)
    for variant in AttentionVariant:
        try:
            architecture = as_variant(base, variant)
            if architecture == asked.deployment.architecture:
                deployment = asked.deployment
            else:
                deployment = _placed(remodelled(bare, architecture))
        except (VariantError, SplitError) as error:
            reasons[variant] = str(error)
            continue
        found[variant] = _Placed(variant, side_of(asked, deployment), deployment.split != asked.deployment.split)
    return found, reasons


def _placed(deployment: Deployment) -> Deployment:
    """The deployment on its GPUs; without context ranks where heads leave them no copies to share out.

    Raises:
        SplitError: heads do not divide.
    """
    try:
        deployment.architecture.split(deployment.split)
    except SplitError:
        if deployment.split.decode_context == 1:
            raise
        return _placed(replace(deployment, split=replace(deployment.split, decode_context=1)))
    return deployment


def _change(here: Deployment, target: _Placed, wanted: str | None) -> dict[str, Any]:
    _, forgotten = forgetting(here, "weights", POOL)
    sections: dict[str, Any] = {"techniques": {"attention": wanted}}
    if target.without_context_ranks:
        sections["parallelism"] = {"decode_context": 1}
    return patch_of(forgotten, **sections)


def _row(
    variant: AttentionVariant,
    found: Mapping[AttentionVariant, _Placed],
    reasons: Mapping[AttentionVariant, str],
    current: AttentionVariant,
    own: AttentionVariant,
) -> Row:
    placed = found.get(variant)
    if placed is None:
        return Row(variant.upper(), (None,) * len(COLUMNS), False, reasons[variant])
    notes = [
        "the model’s own" if variant is own else "",
        "without context ranks (DCP)" if placed.without_context_ranks else "",
        placed.side.note,
    ]
    note = "; ".join(note for note in notes if note)
    return row(COLUMNS, variant.upper(), placed.side, is_here=variant is current, note=note)


def token_bytes(deployment: Deployment) -> float:
    """Bytes that one more token adds while every window has room. Worked number: 131,072 for Llama-3.1-8B."""
    elements = sum(term.elements_per_token for term in cache_shape(deployment.architecture).terms)
    return elements * deployment.precision.kv_cache.bytes


def _attention(side: Side) -> OperatorCost | None:
    """Scores and values of a decode step."""
    return next((op for op in side.measures.decode.operators if op.name is OperatorName.ATTENTION), None)


def _name(placed: _Placed) -> str:
    return {"gqa": "grouped (GQA)", "mqa": "one head for all (MQA)", "mla": "a latent (MLA)"}[placed.variant]


def _sentence(off: Side, on: Side, variant: AttentionVariant) -> Sentence:
    tokens = [token_bytes(side.deployment) for side in (off, on)]
    kept = [side.measures.memory.kv_bytes_per_sequence for side in (off, on)]
    rooms = [side.measures.memory.max_concurrency for side in (off, on)]
    start = "With a key and a value for every head a token adds "
    sizes = Size(tokens[0]), f" of cache, as {variant.upper()} ", Size(tokens[1])
    text = f", {less(*tokens)}."
    whole = kept[0] / kept[1]
    if abs(whole - tokens[0] / tokens[1]) > 0.005 * whole:
        text += f" A whole sequence {shrinks(*kept)}: not all that it keeps are keys and values of heads."
    if rooms[0] and rooms[1]:
        text += f" Room goes from {rooms[0]:,} to {rooms[1]:,} sequences, {significant(rooms[1] / rooms[0], 3)} times."
    elif any(rooms):
        text += f" Room goes from {rooms[0]:,} to {rooms[1]:,} sequences."
    else:
        text += " Not one sequence finds room either way."
    ops = [op.intensity_flops_per_byte for op in map(_attention, (off, on)) if op]
    if len(ops) == len((off, on)):
        text += f" Attention in decode does {significant(ops[1], 3)} FLOP a byte instead of {significant(ops[0], 3)}."
    return start, *sizes, text


def _explained(off: _Placed, on: _Placed) -> tuple[Explanation, ...]:
    found = [
        explain_sequence(
            f"attention.sequence_{placed.variant}",
            f"Cache of a whole sequence as {placed.variant.upper()}",
            placed.side.deployment.architecture,
            placed.side.deployment.workload.total_tokens,
            placed.side.deployment.precision.kv_cache,
        )
        for placed in (off, on)
    ]
    operator = _attention(on.side)
    if operator is not None and operator.bytes:
        terms = (
            ("F", "arithmetic of scores and values in a step", operator.flops, "FLOP"),
            ("D", "cache that they read", operator.bytes, "B"),
        )
        label = f"Intensity of attention in decode as {on.variant.upper()}"
        result = (operator.intensity_flops_per_byte, "FLOP/B", "Roofline: Williams et al., CACM 52(4), 2009")
        found.append(working("attention.intensity", label, "F ÷ D", terms, result))
    return tuple(found)


SPEC = Spec(
    "attention",
    "Fewer keys and values",
    _compare,
    counts=("capacity",),
    shown=("token", "tpot", "capacity"),
    limits=(
        "Nobody trained these models: sizes and speed follow from the shapes, what they would answer does not.",
        "A latent is four heads wide, its rotary part half a head, as in DeepSeek-V2 and V3 (arXiv 2405.04434); "
        "queries stay in one matrix.",
        "In decode a latent is read once for all heads, which moves attention towards the ridge: about two FLOP a byte "
        "for each head in 16 bits, against one for MHA.",
        "Tensor parallelism divides heads, but copies a latent to every GPU; so it does with KV heads fewer than GPUs.",
    ),
    candidate=_candidate,
)
