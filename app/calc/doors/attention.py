"""What is kept of each position: a key and a value for every head (MHA), for groups of heads (GQA), for one (MQA), or a
latent for all (MLA).

Closed is multi-head attention; open is what the model has, or GQA for a model that is MHA itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.calc.architecture import Architecture
from app.calc.attention_variants import AttentionVariant, VariantError, as_variant, own_variant
from app.calc.deployment import Deployment
from app.calc.doors.door import Asked, Better, Door, DoorId, Figure, Level, Row, Variants
from app.calc.doors.sides import Side, figure, less, served_figures, shrinks, side_of, working
from app.calc.doors.stored_bytes import explain_sequence
from app.calc.explanation import Explanation
from app.calc.forgetting import POOL, forgetting, patch_of
from app.calc.kv_cache import cache_shape
from app.calc.layers.parts import OperatorName
from app.calc.measure import measure
from app.calc.notation import quantity, significant
from app.calc.parameters import count_parameters, weight_bytes
from app.calc.phase import OperatorCost
from app.calc.split import SplitError
from app.calc.techniques.drafters import remodelled

TITLE = "Fewer keys and values"
TOKEN, SEQUENCE, WEIGHTS, INTENSITY = (
    "Cache that a token adds",
    "Cache of a whole sequence",
    "Weights",
    "Attention in a decode step",
)
COLUMNS = (
    ("Cache a token", "B"),
    ("Cache of a sequence", "B"),
    ("Weights", "B"),
    ("Attention in decode", "FLOP/B"),
    ("Room", "sequences"),
    ("TPOT, ceiling", "s"),
    ("TPOT, expected", "s"),
    ("Throughput with the room full, expected", "tokens/s"),
)
LIMITS = (
    "Nobody trained these models: sizes and speed follow from the shapes, what they would answer does not.",
    "A latent is four heads wide, its rotary part half a head, as in DeepSeek-V2 and V3 (arXiv 2405.04434); queries "
    "stay in one matrix.",
    "In decode a latent is read once for all heads, which moves attention towards the ridge: about two FLOP a byte for "
    "each head in 16 bits, against one for MHA.",
    "Tensor parallelism divides heads, but copies a latent to every GPU; so it does with KV heads fewer than GPUs.",
)
_OPENED = (AttentionVariant.GQA, AttentionVariant.MLA, AttentionVariant.MQA)


@dataclass(frozen=True, slots=True)
class _Told:
    """One variant, at the load asked for and with its room full; `without_context_ranks` where DCP does not go."""

    variant: AttentionVariant
    side: Side
    full_tokens_per_s: float | None
    without_context_ranks: bool


def attention_door(asked: Asked) -> Door:
    """The scenario's model as MHA, and as what it is."""
    here, published = asked.deployment, asked.deployment.published_architecture
    base = published or here.architecture
    try:
        own, current = own_variant(base), own_variant(here.architecture)
    except VariantError as error:
        return _refused(str(error))
    found, reasons = _told(asked, base)
    usual = [variant for variant in (own, *_OPENED) if variant is not AttentionVariant.MHA and variant in found]
    is_open = current is not AttentionVariant.MHA
    if AttentionVariant.MHA not in found or not usual:
        return _refused(next(iter(reasons.values()), "There is no other attention to compare with."))
    closed, opened = found[AttentionVariant.MHA], found.get(current if is_open else usual[0])
    if opened is None:
        return _refused(reasons[current])
    target = closed if is_open else opened
    wanted = None if target.variant is own and published is not None else str(target.variant)
    label = "Back to multi-head attention (MHA)" if is_open else f"Keep less of each position: {_name(opened)}"
    return Door(
        DoorId.ATTENTION,
        TITLE,
        is_open,
        label,
        _change(here, target, wanted),
        _sentence(closed.side, opened.side, opened.variant),
        (*_stored(closed.side, opened.side), *served_figures(closed.side, opened.side)),
        _explained(closed, opened),
        Variants(COLUMNS, tuple(_row(variant, found, reasons, current, own) for variant in AttentionVariant)),
        LIMITS,
    )


def _refused(reason: str) -> Door:
    return Door(DoorId.ATTENTION, TITLE, False, "Another attention", {}, reason, refused=reason)


def _told(asked: Asked, base: Architecture) -> tuple[dict[AttentionVariant, _Told], Mapping[AttentionVariant, str]]:
    """Each variant that can be told of this deployment, and why the others cannot."""
    found: dict[AttentionVariant, _Told] = {}
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
        side = side_of(asked, deployment)
        found[variant] = _Told(variant, side, _full(side), deployment.split != asked.deployment.split)
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


def _full(side: Side) -> float | None:
    """Output tokens a second with as many sequences as find room; None where not one does."""
    if not side.measures.memory.max_concurrency:
        return None
    workload = replace(side.deployment.workload, concurrency=None)
    return measure(replace(side.deployment, workload=workload)).serving.output_tokens_per_s.best_known


def _change(here: Deployment, target: _Told, wanted: str | None) -> dict[str, Any]:
    _, forgotten = forgetting(here, "weights", POOL)
    sections: dict[str, Any] = {"techniques": {"attention": wanted}}
    if target.without_context_ranks:
        sections["parallelism"] = {"decode_context": 1}
    return patch_of(forgotten, **sections)


def _row(
    variant: AttentionVariant,
    found: Mapping[AttentionVariant, _Told],
    reasons: Mapping[AttentionVariant, str],
    current: AttentionVariant,
    own: AttentionVariant,
) -> Row:
    told = found.get(variant)
    if told is None:
        return Row(variant.upper(), (None,) * len(COLUMNS), False, reasons[variant])
    side, attention = told.side, _attention(told.side)
    served = side.measures.serving
    values = (
        token_bytes(side.deployment),
        side.measures.memory.kv_bytes_per_sequence,
        _weights(side.deployment),
        attention.intensity_flops_per_byte if attention else None,
        float(side.measures.memory.max_concurrency),
        served.tpot_s.ceiling,
        served.tpot_s.mid,
        told.full_tokens_per_s,
    )
    notes = [
        "the model’s own" if variant is own else "",
        "without context ranks (DCP)" if told.without_context_ranks else "",
        side.note,
    ]
    return Row(variant.upper(), values, variant is current, "; ".join(note for note in notes if note))


def token_bytes(deployment: Deployment) -> float:
    """Bytes that one more token adds while every window has room. Worked number: 131,072 for Llama-3.1-8B."""
    elements = sum(term.elements_per_token for term in cache_shape(deployment.architecture).terms)
    return elements * deployment.precision.kv_cache.bytes


def _weights(deployment: Deployment) -> float:
    return weight_bytes(count_parameters(deployment.architecture), deployment.precision.weights)


def _attention(side: Side) -> OperatorCost | None:
    """Scores and values of a decode step."""
    return next((op for op in side.measures.decode.operators if op.name is OperatorName.ATTENTION), None)


def _stored(closed: Side, opened: Side) -> tuple[Figure, ...]:
    both = closed, opened
    sequences = (side.measures.memory.kv_bytes_per_sequence for side in both)
    intensities = [op.intensity_flops_per_byte if op else None for op in map(_attention, both)]
    return (
        figure(TOKEN, (token_bytes(side.deployment) for side in both), "B", Level.EXACT, Better.LOWER),
        figure(SEQUENCE, sequences, "B", Level.EXACT, Better.LOWER),
        figure(WEIGHTS, (_weights(side.deployment) for side in both), "B", Level.EXACT, Better.LOWER),
        figure(INTENSITY, intensities, "FLOP/B", Level.EXACT, Better.HIGHER),
    )


def _name(told: _Told) -> str:
    return {"gqa": "grouped (GQA)", "mqa": "one head for all (MQA)", "mla": "a latent (MLA)"}[told.variant]


def _sentence(closed: Side, opened: Side, variant: AttentionVariant) -> str:
    tokens = [token_bytes(side.deployment) for side in (closed, opened)]
    kept = [side.measures.memory.kv_bytes_per_sequence for side in (closed, opened)]
    rooms = [side.measures.memory.max_concurrency for side in (closed, opened)]
    text = (
        f"With a key and a value for every head a token adds {quantity(tokens[0], 'B', 3)} of cache, as "
        f"{variant.upper()} {quantity(tokens[1], 'B', 3)}"
    )
    text += f", {less(*tokens)}."
    whole = kept[0] / kept[1]
    if abs(whole - tokens[0] / tokens[1]) > 0.005 * whole:
        text += f" A whole sequence {shrinks(*kept)}: not all that it keeps are keys and values of heads."
    if rooms[0] and rooms[1]:
        text += f" Room goes from {rooms[0]:,} to {rooms[1]:,} sequences, {significant(rooms[1] / rooms[0], 3)} times."
    elif any(rooms):
        text += f" Room goes from {rooms[0]:,} to {rooms[1]:,} sequences."
    else:
        text += " Not one sequence finds room either way."
    ops = [op.intensity_flops_per_byte for op in map(_attention, (closed, opened)) if op]
    if len(ops) == len((closed, opened)):
        text += f" Attention in decode does {significant(ops[1], 3)} FLOP a byte instead of {significant(ops[0], 3)}."
    return text


def _explained(closed: _Told, opened: _Told) -> tuple[Explanation, ...]:
    found = [
        explain_sequence(
            f"attention.sequence_{told.variant}",
            f"Cache of a whole sequence as {told.variant.upper()}",
            told.side.deployment.architecture,
            told.side.deployment.workload.total_tokens,
            told.side.deployment.precision.kv_cache,
        )
        for told in (closed, opened)
    ]
    operator = _attention(opened.side)
    if operator is not None and operator.bytes:
        terms = (
            ("F", "arithmetic of scores and values in a step", operator.flops, "FLOP"),
            ("D", "cache that they read", operator.bytes, "B"),
        )
        label = f"Intensity of attention in decode as {opened.variant.upper()}"
        result = (operator.intensity_flops_per_byte, "FLOP/B", "Roofline: Williams et al., CACM 52(4), 2009")
        found.append(working("attention.intensity", label, "F ÷ D", terms, result))
    return tuple(found)
