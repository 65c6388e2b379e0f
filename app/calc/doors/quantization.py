"""Narrower numbers: weights, cache and arithmetic, against 16 bits everywhere.

Closed is the yardstick of 16 bits, whatever the checkpoint ships. Open is what the scenario has, if any part of it is
narrower; else FP8 weights and cache, and FP8 arithmetic where the card has the rate. Scales are counted.
"""

from dataclasses import replace

from app.calc.deployment import Deployment, Precision
from app.calc.doors.door import Asked, Better, Door, DoorId, Figure, Level, Row, Variants
from app.calc.doors.sides import (
    Side,
    change_of_time,
    figure,
    less,
    same_crowd,
    served_figures,
    shrinks,
    side_of,
    times,
    unshrunk,
    working,
)
from app.calc.doors.stored_bytes import explain_cache_gain, explain_weights, scale_bytes
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.explanation import Explanation
from app.calc.forgetting import POOL, forgetting, patch_of
from app.calc.kv_cache import cache_shape
from app.calc.notation import quantity, significant
from app.calc.parameters import count_parameters, weight_bytes
from app.calc.weight_plan import convention

TITLE = "Quantization"
WEIGHTS, SCALES, CACHE, GPU_CACHE, READ, RIDGE = (
    "Weights, scales included",
    "Scales’ share of the weights",
    "Cache of a whole sequence",
    "Cache of a sequence on a GPU, as the engine cuts it",
    "Bytes that a decode step reads on a GPU",
    "Ridge point of the arithmetic",
)
COLUMNS = (
    ("Weights", "B"),
    ("Cache of a sequence", "B"),
    ("Read in a step", "B"),
    ("Room", "sequences"),
    ("TPOT, ceiling", "s"),
    ("TPOT, expected", "s"),
    ("TTFT, ceiling", "s"),
    ("TTFT, expected", "s"),
    ("Throughput, expected", "tokens/s"),
)
LIMITS = (
    "Accuracy is not told: fewer bits cost quality, how much depends on the model and on how it was calibrated.",
    "Embedding, head, router and norms stay in 16 bits, as published checkpoints keep them; states of recurrent layers "
    "keep their own type.",
    "A published rate says what the card can multiply, not that an engine has the kernel. Kernels that compute in 16 "
    "bits keep the 16-bit roof, whatever the weights are stored in.",
    "Where conversion is not fused into the kernel it costs time of its own, which the ceiling leaves out.",
)
_WIDE = (Dtype.BF16, Dtype.FP16, Dtype.TF32, Dtype.FP32)
_NOTICED = 0.005
"""By so much a gain may differ from 2 before it is worth words."""


def quantization_door(asked: Asked) -> Door:
    """The scenario in 16 bits, and with narrower weights, cache and arithmetic."""
    here, wide = asked.deployment, _wide(asked.deployment)
    if wide is None:
        reason = f"{here.accelerator.name} has no published rate of 16-bit arithmetic to compare with."
        return Door(DoorId.QUANTIZATION, TITLE, True, "Narrower numbers", {}, reason, refused=reason)
    is_open = _is_narrow(here.precision)
    narrow = here.precision if is_open else _usual(here, wide)
    other, forgotten = forgetting(here, "weights", POOL)
    closed, opened = (
        side_of(asked, here if precision == here.precision else replace(other, precision=precision))
        for precision in (wide, narrow)
    )
    target = wide if is_open else narrow
    change = {"weights": str(target.weights.label), "kv_cache": str(target.kv_cache), "compute": str(target.compute)}
    figures = (*_stored(closed, opened), *served_figures(closed, opened))
    return Door(
        DoorId.QUANTIZATION,
        TITLE,
        is_open,
        "Back to 16 bits everywhere" if is_open else f"Narrower numbers: {words(narrow)}",
        patch_of(forgotten, precision=change),
        _sentence(closed, opened),
        figures,
        _explained(closed, opened),
        Variants(COLUMNS, _rows(asked, other, wide, (closed, opened))),
        LIMITS,
    )


def words(precision: Precision) -> str:
    """Bits of weights, arithmetic and cache, and the format's name: W4A16 KV16 (INT4)."""
    weights = precision.weights
    bits = f"W{weights.narrowest.element.bits}A{precision.compute.bits} KV{precision.kv_cache.bits}"
    return bits if weights.label == WeightFormat.BF16 else f"{bits} ({weights.label.upper()})"


def _is_narrow(precision: Precision) -> bool:
    stored = precision.weights.narrowest.element, precision.kv_cache, precision.compute
    return any(dtype.bits < Dtype.BF16.bits for dtype in stored)


def _wide(deployment: Deployment) -> Precision | None:
    """16 bits everywhere; wider arithmetic where the card has no such rate; None where it has nothing so wide."""
    own, rates = deployment.precision, deployment.rates
    compute = own.compute if own.compute.bits == Dtype.BF16.bits else next((d for d in _WIDE if d in rates), None)
    if compute is None:
        return None
    cache = own.kv_cache if own.kv_cache.bits == Dtype.BF16.bits else Dtype.BF16
    weights = own.weights.label if own.weights.label in (WeightFormat.BF16, WeightFormat.FP16) else WeightFormat.BF16
    return Precision(convention(WeightFormat(weights), deployment.architecture), cache, compute)


def _usual(deployment: Deployment, wide: Precision) -> Precision:
    compute = Dtype.FP8 if Dtype.FP8 in deployment.rates else wide.compute
    return Precision(convention(WeightFormat.FP8, deployment.architecture), Dtype.FP8, compute)


def _formats(deployment: Deployment, wide: Precision) -> list[Precision]:
    """What is compared: each part narrowed alone, then together, as far as the card has the rates."""
    rates = deployment.rates

    def stored(weights: WeightFormat, kv_cache: Dtype, compute: Dtype) -> Precision:
        return Precision(convention(weights, deployment.architecture), kv_cache, compute)

    found = [
        wide,
        replace(wide, kv_cache=Dtype.FP8),
        stored(WeightFormat.FP8, wide.kv_cache, wide.compute),
        stored(WeightFormat.INT4, wide.kv_cache, wide.compute),
    ]
    if Dtype.FP8 in rates:
        found.insert(3, stored(WeightFormat.FP8, Dtype.FP8, Dtype.FP8))
    elif Dtype.INT8 in rates:
        found.insert(3, stored(WeightFormat.INT8, wide.kv_cache, Dtype.INT8))
    if Dtype.FP4 in rates:
        found += [stored(weights, Dtype.FP8, Dtype.FP4) for weights in (WeightFormat.MXFP4, WeightFormat.NVFP4)]
    return found


def _rows(asked: Asked, other: Deployment, wide: Precision, known: tuple[Side, ...]) -> tuple[Row, ...]:
    here = asked.deployment.precision
    formats = _formats(other, wide)
    formats += [side.deployment.precision for side in known if side.deployment.precision not in formats]
    if here not in formats:
        formats.append(here)
    ready = {side.deployment.precision: side for side in known}
    names = [words(each) for each in formats]
    return tuple(
        _row(
            name
            if names.count(name) == 1
            else f"{name}, {each.kv_cache.upper()} cache, {each.compute.upper()} arithmetic",
            ready.get(each) or side_of(asked, asked.deployment if each == here else replace(other, precision=each)),
            is_here=each == here,
        )
        for each, name in zip(formats, names, strict=True)
    )


def _row(label: str, side: Side, *, is_here: bool) -> Row:
    deployment, measures = side.deployment, side.measures
    served = measures.serving
    values = (
        _weights(deployment),
        measures.memory.kv_bytes_per_sequence,
        measures.decode.bytes,
        float(measures.memory.max_concurrency),
        served.tpot_s.ceiling,
        served.tpot_s.mid,
        served.ttft_s.ceiling,
        served.ttft_s.mid,
        side.tokens_per_s,
    )
    return Row(label, values, is_here, side.note)


def _weights(deployment: Deployment) -> float:
    return weight_bytes(count_parameters(deployment.architecture), deployment.precision.weights)


def _scale_share(deployment: Deployment) -> float:
    return scale_bytes(deployment.architecture, deployment.precision.weights) / _weights(deployment)


def _ridge(deployment: Deployment) -> float:
    """Peak of the matrices' arithmetic ÷ bandwidth."""
    card = deployment.accelerator
    return card.peak(deployment.matrix_dtype(deployment.precision.weights.narrowest)) / card.bandwidth_bytes_per_s


def _stored(closed: Side, opened: Side) -> tuple[Figure, ...]:
    both = closed, opened
    weights, shares, ridges = ([f(side.deployment) for side in both] for f in (_weights, _scale_share, _ridge))
    held = [side.measures.memory for side in both]
    read = (side.measures.decode.bytes for side in both)
    found = [
        figure(WEIGHTS, weights, "B", Level.EXACT, Better.LOWER),
        figure(SCALES, shares, "", Level.EXACT, Better.NEITHER),
        figure(CACHE, (one.kv_bytes_per_sequence for one in held), "B", Level.EXACT, Better.LOWER),
        figure(READ, read, "B", Level.EXACT, Better.LOWER),
        figure(RIDGE, ridges, "FLOP/B", Level.CEILING, Better.NEITHER),
    ]
    if any(one.gpu_bytes_per_sequence != one.kv_bytes_per_sequence for one in held):
        found.insert(3, figure(GPU_CACHE, (m.gpu_bytes_per_sequence for m in held), "B", Level.EXPECTED, Better.LOWER))
    return tuple(found)


def _sentence(closed: Side, opened: Side) -> str:
    return " ".join(part for part in (_of_weights(closed, opened), _of_cache(closed, opened), _of_time(closed, opened)))


def _of_weights(closed: Side, opened: Side) -> str:
    before, after = _weights(closed.deployment), _weights(opened.deployment)
    if after == before:
        return f"The weights stay at {quantity(before, 'B', 3)}."
    share = scale_bytes(opened.deployment.architecture, opened.deployment.precision.weights) / after
    scales = f", {significant(100 * share, 2)} % of that scales" if share else ""
    return (
        f"As {words(opened.deployment.precision)} the weights take {quantity(after, 'B', 3)} instead of "
        f"{quantity(before, 'B', 3)}, {less(before, after)}{scales}."
    )


def _of_cache(closed: Side, opened: Side) -> str:
    """The gain of a whole sequence, and what of it keeps its width."""
    before, after = (side.measures.memory.kv_bytes_per_sequence for side in (closed, opened))
    width = closed.deployment.precision.kv_cache.bits / opened.deployment.precision.kv_cache.bits
    if width == 1 or not after:
        return "The cache stays as wide as it was." if width == 1 else "There is no cache to narrow."
    gain, states = before / after, cache_shape(opened.deployment.architecture).state_bytes
    if states and width - gain > _NOTICED:
        kept = f"{quantity(states, 'B', 3)} of recurrent states keep their type"
        return f"The cache of a sequence {shrinks(before, after)}, not {significant(width, 3)} times: {kept}."
    on_gpu = closed.measures.memory.gpu_bytes_per_sequence / opened.measures.memory.gpu_bytes_per_sequence
    if abs(on_gpu - width) > _NOTICED * width:
        cut = "whole blocks, and what the engine keeps in types of its own, do not follow"
        return f"The cache of a sequence {shrinks(before, after)}, {times(on_gpu)} on a GPU: {cut}."
    return f"The cache of a sequence {shrinks(before, after)}."


def _of_time(closed: Side, opened: Side) -> str:
    ridges = [significant(_ridge(side.deployment), 3) for side in (closed, opened)]
    if opened.deployment.precision.compute.bits >= Dtype.BF16.bits:
        roof = f"The arithmetic stays in {opened.deployment.precision.compute.upper()}, and so does its roof."
    else:
        roof = f"The ridge point moves from {ridges[0]} to {ridges[1]} FLOP/B."
    if not same_crowd(closed, opened):
        crowds = [side.measures.memory.served_sequences for side in (closed, opened)]
        rates = [quantity(side.tokens_per_s, "tokens/s", 3) for side in (closed, opened)]
        return (
            f"At a time {crowds[1]:,} sequences run instead of {crowds[0]:,}: {rates[1]} instead of {rates[0]}. {roof}"
        )
    read = closed.measures.decode.bytes / opened.measures.decode.bytes
    text = f"A step reads {less(closed.measures.decode.bytes, opened.measures.decode.bytes)}, and a token comes"
    text = change_of_time(text, closed.tpot_s, opened.tpot_s)
    kept = unshrunk(closed, opened)
    if kept is not None and closed.tpot_s / opened.tpot_s < read:
        text = f"{text}: {kept[0]} took no less, {quantity(kept[1], 's', 3)} of it"
    return f"{text}. {roof}"


def _explained(closed: Side, opened: Side) -> tuple[Explanation, ...]:
    deployment, card = opened.deployment, opened.deployment.accelerator
    dtype = deployment.matrix_dtype(deployment.precision.weights.narrowest)
    terms = (
        ("P", f"dense {dtype.upper()} rate of the card", card.peak(dtype), "FLOP/s"),
        ("W", "memory bandwidth", card.bandwidth_bytes_per_s, "B/s"),
    )
    source = "Roofline: Williams et al., CACM 52(4), 2009"
    return (
        explain_weights("quantization.weights", deployment.architecture, deployment.precision.weights),
        *explain_cache_gain(closed.deployment, deployment),
        working("quantization.ridge", "Ridge point, open", "P ÷ W", terms, (_ridge(deployment), "FLOP/B", source)),
    )
