"""What a forward pass computes and moves, operator by operator.

Counted bytes are the ones no kernel can avoid: every weight once a pass (of experts those that a token chose), table
rows gathered, each new row of the cache written, each visible one read, each recurrent state written (and read).
Activations between operators are left out, because a fused kernel or the on-chip cache keeps them from memory; so are
softmax, activation functions, rotary and residual additions. That makes the result a floor: a real pass moves more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

from app.calc.broadcast import Quantity, maximum
from app.calc.deployment import Deployment
from app.calc.dtypes import Dtype, WeightLayout
from app.calc.memory.rank import draft_split
from app.calc.model.architecture import Architecture, LayerGroup
from app.calc.model.layers.parts import (
    FLOPS_PER_MULTIPLY_ADD,
    FLOPS_PER_NORM_ELEMENT,
    OperatorName,
    Run,
    WeightGroup,
    Weights,
)
from app.calc.model.parameters import WeightPlan, final_norm_params, head_params, layer_weights
from app.calc.time.speculation import Speculation

_DtypeOf: TypeAlias = Callable[[Weights, LayerGroup], Dtype]


@dataclass(frozen=True, slots=True)
class Operator:
    """All layers of one group together: FLOPs, bytes of memory, the type whose peak applies, bytes over the link.

    `calls` is how often it runs in a pass, once for each layer of the group; `stored` is the type its matrices, or the
    cache that it reads, are stored in. `is_drafting`: it guesses, for the model to check.
    """

    name: OperatorName
    flops: Quantity
    bytes: Quantity
    dtype: Dtype
    link_bytes: Quantity = 0.0
    calls: int = 1
    stored: Dtype = Dtype.BF16
    is_drafting: bool = False


def decode_operators(deployment: Deployment, batch: Quantity, context_tokens: Quantity) -> list[Operator]:
    """Operators, on one GPU, of one decode step of a replica's `batch` sequences that each hold `context_tokens`.

    Data-parallel ranks share the sequences out, and pipeline stages work on as many parts of them at a time, each part
    passing all stages: the GPUs of the stages are counted one after the other. Where tokens are guessed, the drafter's
    passes come first, one after the other, and the model then works on all guesses at a time.

    Args:
        deployment: model, card, precision and split; its workload is not read.
        batch: sequences of one replica, any shape.
        context_tokens: tokens in each sequence's cache, any shape that broadcasts with `batch`.

    Worked number: Llama-3.1-8B in bf16 at batch 1 and 4,096 tokens moves 15.01 GB of weights and 0.537 GB of cache.
    """
    split = deployment.split
    on_rank = maximum(1.0, batch / split.data) if split.data > 1 else batch
    part = maximum(1.0, on_rank / split.pipeline) if split.pipeline > 1 else on_rank
    positions = float(deployment.positions)
    run = Run(part, positions, context_tokens - 1.0, is_decode=True, ranks_together=batch / on_rank)
    return _operators(deployment, run, part * positions) + draft_steps(deployment, run, context_tokens)


def prefill_operators(
    deployment: Deployment, new_tokens: Quantity, cached_tokens: Quantity = 0.0, ranks_together: Quantity = 1.0
) -> list[Operator]:
    """Operators, on one GPU, of one request's prefill: `new_tokens` after `cached_tokens` of the prefix cache.

    Causal: token i attends to itself and to what is before it. The head runs once, for the position that gives the
    first output token. Where so many data-parallel ranks prefill a request each (`ranks_together`), the experts that
    they share out work on all of them; else on this one alone, with the GPUs of all ranks.

    Worked number: 1,000 tokens of Llama-3.1-8B: 13.96e12 FLOP in matrices, 0.262e12 in attention, 1.05e9 in the head.
    """
    matrices = deployment.matrix_dtype(deployment.precision.weights.layout(WeightGroup.ATTENTION))
    peak = deployment.accelerator.peak
    speedup = peak(matrices) / peak(deployment.attention_dtype)
    run = Run(1.0, new_tokens, cached_tokens, False, speedup, ranks_together)
    return _operators(deployment, run, 1.0) + draft_prefill(deployment, run)


def draft_steps(deployment: Deployment, run: Run, context_tokens: Quantity) -> list[Operator]:
    """The drafter's k passes before a step (`run`) checks them; nothing where guessing costs no GPU time."""
    speculation = deployment.speculation
    if speculation is None or speculation.drafter is None:
        return []
    sequences = run.sequences * run.ranks_together if speculation.is_by_own_layers else run.sequences
    once = decode_operators(drafting_deployment(deployment, speculation), sequences, context_tokens)
    return [_repeated(operator, speculation.draft_tokens) for operator in once]


def draft_prefill(deployment: Deployment, run: Run) -> list[Operator]:
    """The drafter's own prefill of the prompt of a `run`: it guesses from a cache of its own."""
    speculation = deployment.speculation
    if speculation is None or speculation.drafter is None:
        return []
    ranks = run.ranks_together if speculation.is_by_own_layers else 1.0
    drafting = drafting_deployment(deployment, speculation)
    once = prefill_operators(drafting, run.new_tokens, run.cached_tokens, ranks)
    return [_repeated(operator, 1) for operator in once]


def drafting_deployment(deployment: Deployment, speculation: Speculation) -> Deployment:
    """The drafter on the GPUs of the last stage. The model's own layers are split as the others are; a model or a head
    beside it among the tensor ranks, or whole on each where it does not divide.
    """
    drafter, split = speculation.drafter, replace(deployment.split, pipeline=1)
    assert drafter is not None  # noqa: S101  # whoever asks has looked
    if not speculation.is_by_own_layers:
        split = draft_split(drafter.architecture, deployment.split.tensor)
    precision = replace(deployment.precision, weights=drafter.weights)
    return replace(
        deployment, architecture=drafter.architecture, precision=precision, split=split, draft=None, speculation=None
    )


def _repeated(operator: Operator, times: int) -> Operator:
    return Operator(
        operator.name,
        times * operator.flops,
        times * operator.bytes,
        operator.dtype,
        times * operator.link_bytes,
        times * operator.calls,
        operator.stored,
        is_drafting=True,
    )


@dataclass(frozen=True, slots=True)
class _Slot:
    """The weights that one operator of one layer group reads in one type: constants of the pass."""

    name: OperatorName
    dtype: Dtype
    stored: Dtype
    flops_per_token: float
    fixed_bytes: float
    bytes_per_token: float
    experts: tuple[tuple[Weights, float], ...]
    is_pooled: bool


@dataclass(frozen=True, slots=True)
class _Program:
    """A layer group prepared for one precision: its slots, and the cache elements that a token writes."""

    group: LayerGroup
    slots: tuple[_Slot, ...]
    written_elements_per_token: float
    dtypes: Mapping[OperatorName, Dtype]


def _operators(deployment: Deployment, run: Run, logits: Quantity) -> list[Operator]:
    architecture = deployment.rank_architecture
    plan, wide = deployment.precision.weights, deployment.wide_dtype
    hidden = architecture.hidden_size
    kv_bytes = deployment.precision.kv_cache.bytes / deployment.split.decode_context
    tables = 2 if architecture.learned_positions else 1  # rows of the table, and of the position table
    row_bytes = tables * hidden * plan.layout(WeightGroup.EMBEDDING).bytes_per_weight
    result = [Operator(OperatorName.EMBEDDING, 0.0, run.tokens * row_bytes, wide)]
    types = deployment.attention_dtype, wide, deployment.precision.kv_cache
    for program in _programs(deployment):
        result += _layer_operators(program, run, kv_bytes, types)
    final_norm = FLOPS_PER_NORM_ELEMENT * logits * hidden
    gains = final_norm_params(architecture) * plan.wide.bytes_per_weight
    result.append(Operator(OperatorName.NORMS, final_norm, gains, wide))
    result.append(_head(deployment, architecture, logits))
    if deployment.split.tensor > 1:
        result.append(_all_reduces(deployment, run))
    return result


def _head(deployment: Deployment, architecture: Architecture, logits: Quantity) -> Operator:
    """Tied or not, the head reads V·h; a bias is added to each logit."""
    layout, params = deployment.head_layout, head_params(architecture)
    bias = architecture.vocab_size if architecture.head_bias else 0
    moved = params * layout.bytes_per_weight + bias * deployment.precision.weights.wide.bytes_per_weight
    flops = FLOPS_PER_MULTIPLY_ADD * logits * params
    return Operator(OperatorName.HEAD, flops, moved, deployment.matrix_dtype(layout), stored=layout.element)


def _layer_operators(program: _Program, run: Run, kv_bytes: float, types: tuple[Dtype, Dtype, Dtype]) -> list[Operator]:
    """Slots with their weights, the first of the mixer with what it writes to the cache, and the mixer's own work."""
    count, result = program.group.count, []
    attention, wide, kv_dtype = types
    written = program.written_elements_per_token * kv_bytes
    for slot in program.slots:
        tokens = run.pooled_tokens if slot.is_pooled else run.tokens
        moved: Quantity = slot.fixed_bytes
        if slot.bytes_per_token:
            moved = moved + slot.bytes_per_token * tokens
        for weights, copy_bytes in slot.experts:
            moved = moved + copy_bytes * weights.touched(tokens)
        if written and slot.name is OperatorName.QKV:
            moved, written = moved + written * run.tokens, 0.0
        flops = slot.flops_per_token * tokens
        result.append(Operator(slot.name, flops, moved, slot.dtype, calls=count, stored=slot.stored))
    mixer = program.group.mixer
    for work in mixer.work(run) if mixer is not None else ():
        moved = count * (work.cache_elements * kv_bytes + work.state_bytes)
        dtype = attention if work.operator is OperatorName.ATTENTION else program.dtypes.get(work.operator, wide)
        stored = kv_dtype if work.operator is OperatorName.ATTENTION else wide
        result.append(Operator(work.operator, count * work.flops, moved, dtype, calls=count, stored=stored))
    return result


def _all_reduces(deployment: Deployment, run: Run) -> Operator:
    """A ring all-reduce after each mixer and each feed-forward part: 2·(n − 1)/n of the activations in one direction.

    Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69(2), 2009.
    """
    ranks, architecture = deployment.split.tensor, deployment.architecture
    reduced = sum(g.count * ((g.mixer is not None) + bool(g.feed_forwards)) for g in architecture.layers)
    width = architecture.hidden_size * deployment.wide_dtype.bytes
    volume = 2 * (ranks - 1) / ranks * reduced * width * run.tokens
    return Operator(OperatorName.ALL_REDUCE, 0.0, 0.0, deployment.wide_dtype, volume, reduced)


def _programs(deployment: Deployment) -> tuple[_Program, ...]:
    precision = deployment.precision
    narrow = tuple((layout, deployment.matrix_dtype(layout)) for _, layout in precision.weights.narrow)
    return _compiled(deployment.rank_architecture, precision.weights, narrow, deployment.wide_dtype)


@lru_cache(maxsize=256)
def _compiled(
    architecture: Architecture, plan: WeightPlan, narrow: tuple[tuple[WeightLayout, Dtype], ...], wide: Dtype
) -> tuple[_Program, ...]:
    """The layer groups (and side paths) of an architecture under a plan; the same for every pass of a deployment."""
    dtypes = dict(narrow)

    def dtype_of(weights: Weights, group: LayerGroup) -> Dtype:
        if not weights.is_matrix or weights.group in group.unquantized:
            return wide
        return dtypes.get(plan.layout(weights.group), wide)

    groups = list(architecture.layers)
    if architecture.side_paths:
        groups.append(LayerGroup(1, None, norms=0, side_paths=architecture.side_paths))
    return tuple(_program(group, architecture, plan, dtype_of) for group in groups)


def _program(group: LayerGroup, architecture: Architecture, plan: WeightPlan, dtype_of: _DtypeOf) -> _Program:
    by_name: dict[OperatorName, list[Weights]] = {}
    for weights in layer_weights(group, architecture.hidden_size, norm_bias=architecture.norm_bias):
        by_name.setdefault(weights.operator, []).append(weights)
    slots = tuple(_slot(name, found, group, plan, dtype_of) for name, found in by_name.items())
    rows = group.mixer.cache() if group.mixer is not None else ()
    written = group.count * sum(row.width_per_token for row in rows)
    # Work that multiplies as its matrices do runs in their type; scores and states do not.
    together = (OperatorName.INDEXER, OperatorName.LATENT_UP)
    dtypes: dict[OperatorName, Dtype] = {slot.name: slot.dtype for slot in slots if slot.name in together}
    return _Program(group, slots, written, MappingProxyType(dtypes))


def _slot(name: OperatorName, found: list[Weights], group: LayerGroup, plan: WeightPlan, dtype_of: _DtypeOf) -> _Slot:
    """One operator: its matrices decide the arithmetic, its vectors come along."""
    count, wide = group.count, plan.wide.bytes_per_weight
    fixed = gathered = flops = 0.0
    experts = []
    for weights in found:
        stays_wide = not weights.is_matrix or weights.group in group.unquantized
        each = count * (wide if stays_wide else plan.layout(weights.group).bytes_per_weight)
        flops += count * weights.flops
        if weights.gathered is not None:
            gathered += each * weights.gathered
        elif weights.is_choice:
            experts.append((weights, each * weights.params))
        else:
            fixed += each * weights.stored
    leading = next((w for w in found if w.is_matrix), found[0])
    is_pooled = any(weights.is_pooled for weights in found)
    is_wide = not leading.is_matrix or leading.group in group.unquantized
    stored = (plan.wide if is_wide else plan.layout(leading.group)).element
    return _Slot(name, dtype_of(leading, group), stored, flops, fixed, gathered, tuple(experts), is_pooled)
