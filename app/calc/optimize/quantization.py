"""Narrower numbers: weights, cache and arithmetic, against 16 bits everywhere.

Without it is the yardstick of 16 bits, whatever the checkpoint ships. With it is what the scenario has, if any part of
it is narrower; else FP8 weights and cache, and FP8 arithmetic where the card has the rate. Scales are counted.
"""

from dataclasses import replace

from app.calc.deployment import Deployment, Precision
from app.calc.derivation import Explanation
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.memory.cache import cache_shape
from app.calc.model.parameters import convention
from app.calc.optimize.optimization import (
    Asked,
    Better,
    Level,
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
    change_of_time,
    figures,
    less,
    loaded_weight_bytes,
    row,
    same_crowd,
    served_figures,
    shrinks,
    side_of,
    times,
    unshrunk,
    working,
)
from app.calc.optimize.stored_bytes import explain_cache_gain, explain_weights, scale_bytes
from app.calc.quantity import quantity, significant
from app.calc.sweep import POOL, forgetting, patch_of

_TITLE = "Narrower numbers"
WEIGHTS = Quantity(
    "weights",
    "Weights, scales included",
    "B",
    better=Better.LOWER,
    read=lambda side: loaded_weight_bytes(side.deployment),
)
SCALES = Quantity("scale_share", "Scales’ share of the weights", "", read=lambda side: _scale_share(side.deployment))
CACHE = Quantity(
    "sequence",
    "Cache of a whole sequence",
    "B",
    better=Better.LOWER,
    read=lambda side: side.measures.memory.kv_bytes_per_sequence,
)
GPU_CACHE = Quantity(
    "gpu_sequence",
    "Cache of a sequence on a GPU, as the engine cuts it",
    "B",
    Level.EXPECTED,
    Better.LOWER,
    lambda side: side.measures.memory.gpu_bytes_per_sequence,
)
READ = Quantity(
    "read_bytes",
    "Bytes that a decode step reads on a GPU",
    "B",
    better=Better.LOWER,
    read=lambda side: side.measures.decode.bytes,
)
RIDGE = Quantity(
    "ridge", "Ridge point of the arithmetic", "FLOP/B", Level.CEILING, read=lambda side: _ridge(side.deployment)
)
COLUMNS = (
    Quantity("weights", "Weights", "B", read=WEIGHTS.read),
    Quantity("sequence", "Cache of a sequence", "B", read=CACHE.read),
    Quantity("read_bytes", "Read in a step", "B", read=READ.read),
    ROOM_COLUMN,
    TPOT_CEILING,
    TPOT_EXPECTED,
    Quantity("ttft_ceiling", "TTFT, ceiling", "s", read=lambda side: side.measures.serving.ttft_s.ceiling),
    Quantity("ttft_expected", "TTFT, expected", "s", read=lambda side: side.measures.serving.ttft_s.mid),
    Quantity("throughput", "Throughput, expected", "tokens/s", read=lambda side: side.tokens_per_s),
)
_WIDE = (Dtype.BF16, Dtype.FP16, Dtype.TF32, Dtype.FP32)
_NOTICED = 0.005
"""By so much a gain may differ from 2 before it is worth words."""


def _compare(asked: Asked) -> Optimization:
    """The scenario in 16 bits, and with narrower weights, cache and arithmetic."""
    here, wide = asked.deployment, _wide(asked.deployment)
    if wide is None:
        reason = f"{here.accelerator.name} has no published rate of 16-bit arithmetic to compare with."
        return refusal(SPEC, reason, is_used=True, label=_TITLE)
    is_used = _is_narrow(here.precision)
    narrow = here.precision if is_used else _usual(here, wide)
    other, forgotten = forgetting(here, "weights", POOL)
    off, on = (
        side_of(asked, here if precision == here.precision else replace(other, precision=precision))
        for precision in (wide, narrow)
    )
    target = wide if is_used else narrow
    change = {"weights": str(target.weights.label), "kv_cache": str(target.kv_cache), "compute": str(target.compute)}
    held = [side.measures.memory for side in (off, on)]
    is_cut = any(one.gpu_bytes_per_sequence != one.kv_bytes_per_sequence for one in held)
    stored = (WEIGHTS, SCALES, CACHE, *((GPU_CACHE,) if is_cut else ()), READ, RIDGE)
    return Optimization(
        SPEC,
        is_used,
        "Back to 16 bits everywhere" if is_used else f"{_TITLE}: {words(narrow)}",
        patch_of(forgotten, precision=change),
        (*_of_weights(off, on), " ", *_of_cache(off, on), " ", _of_time(off, on)),
        (*figures(stored, off, on), *served_figures(off, on)),
        _explained(off, on),
        Variants(COLUMNS, _rows(asked, other, wide, (off, on))),
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
        row(
            COLUMNS,
            name
            if names.count(name) == 1
            else f"{name}, {each.kv_cache.upper()} cache, {each.compute.upper()} arithmetic",
            ready.get(each) or side_of(asked, asked.deployment if each == here else replace(other, precision=each)),
            is_here=each == here,
        )
        for each, name in zip(formats, names, strict=True)
    )


def _scale_share(deployment: Deployment) -> float:
    return scale_bytes(deployment.architecture, deployment.precision.weights) / loaded_weight_bytes(deployment)


def _ridge(deployment: Deployment) -> float:
    """Peak of the matrices' arithmetic ÷ bandwidth."""
    card = deployment.accelerator
    return card.peak(deployment.matrix_dtype(deployment.precision.weights.narrowest)) / card.bandwidth_bytes_per_s


def _of_weights(off: Side, on: Side) -> Sentence:
    before, after = loaded_weight_bytes(off.deployment), loaded_weight_bytes(on.deployment)
    if after == before:
        return "The weights stay at ", Size(before), "."
    share = scale_bytes(on.deployment.architecture, on.deployment.precision.weights) / after
    scales = f", {significant(100 * share, 2)} % of that scales" if share else ""
    return (
        f"As {words(on.deployment.precision)} the weights take ",
        Size(after),
        " instead of ",
        Size(before),
        f", {less(before, after)}{scales}.",
    )


def _of_cache(off: Side, on: Side) -> Sentence:
    """The gain of a whole sequence, and what of it keeps its width."""
    before, after = (side.measures.memory.kv_bytes_per_sequence for side in (off, on))
    width = off.deployment.precision.kv_cache.bits / on.deployment.precision.kv_cache.bits
    if width == 1 or not after:
        return ("The cache stays as wide as it was." if width == 1 else "There is no cache to narrow.",)
    gain, states = before / after, cache_shape(on.deployment.architecture).state_bytes
    if states and width - gain > _NOTICED:
        start = f"The cache of a sequence {shrinks(before, after)}, not {significant(width, 3)} times: "
        return start, Size(states), " of recurrent states keep their type."
    on_gpu = off.measures.memory.gpu_bytes_per_sequence / on.measures.memory.gpu_bytes_per_sequence
    if abs(on_gpu - width) > _NOTICED * width:
        cut = "whole blocks, and what the engine keeps in types of its own, do not follow"
        return (f"The cache of a sequence {shrinks(before, after)}, {times(on_gpu)} on a GPU: {cut}.",)
    return (f"The cache of a sequence {shrinks(before, after)}.",)


def _of_time(off: Side, on: Side) -> str:
    ridges = [significant(_ridge(side.deployment), 3) for side in (off, on)]
    if on.deployment.precision.compute.bits >= Dtype.BF16.bits:
        roof = f"The arithmetic stays in {on.deployment.precision.compute.upper()}, and so does its roof."
    else:
        roof = f"The ridge point moves from {ridges[0]} to {ridges[1]} FLOP/B."
    if not same_crowd(off, on):
        crowds = [side.measures.memory.served_sequences for side in (off, on)]
        rates = [quantity(side.tokens_per_s, "tokens/s", 3) for side in (off, on)]
        return (
            f"At a time {crowds[1]:,} sequences run instead of {crowds[0]:,}: {rates[1]} instead of {rates[0]}. {roof}"
        )
    read = off.measures.decode.bytes / on.measures.decode.bytes
    text = f"A step reads {less(off.measures.decode.bytes, on.measures.decode.bytes)}, and a token comes"
    text = change_of_time(text, off.tpot_s, on.tpot_s)
    kept = unshrunk(off, on)
    if kept is not None and off.tpot_s / on.tpot_s < read:
        text = f"{text}: {kept[0]} took no less, {quantity(kept[1], 's', 3)} of it"
    return f"{text}. {roof}"


def _explained(off: Side, on: Side) -> tuple[Explanation, ...]:
    deployment, card = on.deployment, on.deployment.accelerator
    dtype = deployment.matrix_dtype(deployment.precision.weights.narrowest)
    terms = (
        ("P", f"dense {dtype.upper()} rate of the card", card.peak(dtype), "FLOP/s"),
        ("W", "memory bandwidth", card.bandwidth_bytes_per_s, "B/s"),
    )
    source = "Roofline: Williams et al., CACM 52(4), 2009"
    return (
        explain_weights("quantization.weights", deployment.architecture, deployment.precision.weights),
        *explain_cache_gain(off.deployment, deployment),
        working("quantization.ridge", "Ridge point, open", "P ÷ W", terms, (_ridge(deployment), "FLOP/B", source)),
    )


SPEC = Spec(
    "quantization",
    "Quantization",
    _compare,
    counts=("tpot",),
    shown=("read_bytes", "tpot", "capacity"),
    limits=(
        "Accuracy is not told: fewer bits cost quality, how much depends on the model and on how it was calibrated.",
        "Embedding, head, router and norms stay in 16 bits, as published checkpoints keep them; states of recurrent "
        "layers keep their own type.",
        "A published rate says what the card can multiply, not that an engine has the kernel. Kernels that compute in "
        "16 bits keep the 16-bit roof, whatever the weights are stored in.",
        "Where conversion is not fused into the kernel it costs time of its own, which the ceiling leaves out.",
    ),
)
