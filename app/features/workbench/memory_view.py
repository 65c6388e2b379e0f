"""The engine of an answer in words: whose rules divide the memory is said wherever its name stands.

How the engine divides a GPU, in tables: what it needs beside weights, each stage, what its log prints.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.calc.evaluate import Evaluation
from app.calc.memory.capacity import printed_length
from app.calc.memory.engines.ideal import IdealPolicy
from app.calc.memory.engines.llama_cpp import LlamaCppPolicy
from app.calc.memory.engines.paged_pool import BlockRoom
from app.calc.memory.engines.parts import LogLine, Overhead, Part
from app.calc.memory.logged import Line
from app.calc.quantity import quantity, significant
from app.scenario.answer import Answer


def engine_words(answered: Answer) -> str:
    """The engine with its release; and the other one, if it is treated as that, or runs it."""
    named, rules, version = answered.engine, answered.rules, answered.scenario.engine.version
    release = f" {version}" if version else ""
    if named.treated_as is not None:
        return f"{named.name}{release}, treated as {rules.name}, from which it grew"
    if named is not rules:
        return f"{named.name} with {rules.name}{release} underneath"
    return f"{named.name}{release}"


def settings_words(answered: Answer) -> str:
    """What the engine works with now, chosen or its own default, in a line."""
    deployment = answered.evaluation.deployment
    engine = deployment.engine
    parts = [f"share {engine.memory_utilization:g}"]
    if not isinstance(engine.policy, IdealPolicy):
        sized = engine.max_num_seqs or engine.profiled_seqs
        parts += [
            f"{engine.step_tokens:,} tokens a step",
            f"buffers for {sized:,} sequences",
            f"blocks of {engine.block_tokens:,}" if engine.block_tokens > 1 else "no blocks",
            f"prefix caching {'on' if engine.prefix_caching else 'off'}",
        ]
    parts.append(f"sequences of up to {deployment.max_model_len:,} tokens")
    return f"Now: {', '.join(parts)}."


DIGITS = 3
_PARTS = {
    Part.DRIVER: ("Driver’s part", "seen"),
    Part.ACTIVATION: ("Activations, at their peak", "activation"),
    Part.NON_FRAMEWORK: ("Non-framework: collectives, workspaces, contexts", "non_framework"),
    Part.GRAPHS: ("CUDA graphs", "graphs"),
}


@dataclass(frozen=True, slots=True)
class Need:
    """What takes memory beside the cache. `field` is the input that sets it."""

    part: str
    size: str
    interval: str
    known: str
    where: str
    evidence: str
    field: str


@dataclass(frozen=True, slots=True)
class StageRow:
    """One GPU of a pipeline stage."""

    stage: int
    layers: int
    weights: str
    pool: str
    tokens: str
    sequences: str
    is_tightest: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """A logged figure beside the predicted one."""

    label: str
    logged: str
    predicted: str
    interval: str
    difference: str
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The section "How … divides a GPU"."""

    engine: str
    settings: str
    gpus: str
    stage_words: str
    needs: Sequence[Need]
    stages: Sequence[StageRow]
    log_lines: Sequence[LogLine]
    why_two_lines: str
    why_no_start: str
    compared: Sequence[Compared]


def memory_view(answered: Answer, *, binary: bool) -> MemoryView:
    """The section of an answer; sizes in GiB where `binary`."""
    evaluation = answered.evaluation
    held = evaluation.measures.memory
    return MemoryView(
        engine=engine_words(answered),
        settings=settings_words(answered).removeprefix("Now: "),
        gpus=gpus_words(evaluation),
        stage_words=_stage_words(evaluation),
        needs=list(_needs(evaluation, binary)),
        stages=_stages(evaluation, binary) if len(held.ranks) > 1 else (),
        log_lines=_log_lines(held.log_lines),
        why_two_lines=_why_two_lines(evaluation, binary),
        why_no_start=_why_no_start(evaluation, binary),
        compared=[_compared(line, binary) for line in evaluation.comparison],
    )


def _log_lines(lines: Sequence[LogLine]) -> list[LogLine]:
    """What is printed; both forms of the token line where they differ, and one where they are the same number."""
    by_id = {line.id: line for line in lines}
    printed, other = by_id.get("tokens"), by_id.get("other_tokens")
    if printed is None or other is None or printed.value != other.value:
        return list(lines)
    both = replace(printed, text=f"{printed.text}, in either form")
    return [both if line is printed else line for line in lines if line is not other]


def gpus_words(evaluation: Evaluation) -> str:
    """All GPUs as a product; empty for a single one."""
    deployment = evaluation.deployment
    split = deployment.split
    if deployment.gpus == 1:
        return ""
    replicas = f"{deployment.replicas:,} {'replica' if deployment.replicas == 1 else 'replicas'}"
    text = f"{deployment.gpus:,} GPUs = {replicas} × TP {split.tensor:,} × PP {split.pipeline:,} × DP {split.data:,}"
    more = [f"{name} {n:,}" for name, n in (("EP", split.expert), ("DCP", split.decode_context)) if n > 1]
    return f"{text}; within them {' and '.join(more)}." if more else f"{text}."


def _stage_words(evaluation: Evaluation) -> str:
    """Which GPU is shown, and which are like it."""
    deployment, held = evaluation.deployment, evaluation.measures.memory
    alike = deployment.split.tensor * deployment.split.data
    same = f"The {alike:,} GPUs of a stage are alike. " if alike > 1 else ""
    if len(held.ranks) > 1:
        place = held.tightest.stage + 1
        return f"{same}A sequence needs room on every stage; stage {place} is the tightest, and is what is shown here."
    if deployment.gpus > 1:
        return f"The {deployment.gpus:,} GPUs are alike; one is shown."
    return ""


def _needs(evaluation: Evaluation, binary: bool) -> Iterator[Need]:
    rank, given = evaluation.measures.memory.tightest, evaluation.deployment.engine.given
    low, mid, high = rank.weights.sides
    policy = evaluation.deployment.engine.policy
    yield Need(
        "Weights",
        quantity(mid, "B", DIGITS, binary=binary),
        _interval(low, high, binary),
        "computed" if given.weights is None else "given",
        "share",
        policy.weights.words or "Sum of the tensors." if given.weights is None else "Given with the scenario.",
        "loaded",
    )
    for overhead in rank.overheads:
        yield _need(overhead, binary)


def _need(overhead: Overhead, binary: bool) -> Need:
    words, field = _PARTS[overhead.part]
    is_driver = overhead.part is Part.DRIVER
    known = "given" if overhead.is_given else "known" if is_driver else "assumed"
    return Need(
        words,
        quantity(overhead.bytes.mid, "B", DIGITS, binary=binary),
        _interval(overhead.bytes.low, overhead.bytes.high, binary),
        known,
        "before the engine" if is_driver else "share" if overhead.is_charged else "outside the share",
        overhead.evidence,
        field,
    )


def _interval(low: float, high: float, binary: bool) -> str:
    if low == high:
        return ""
    return f"{quantity(low, 'B', DIGITS, binary=binary)} to {quantity(high, 'B', DIGITS, binary=binary)}"


def _stages(evaluation: Evaluation, binary: bool) -> list[StageRow]:
    deployment, held = evaluation.deployment, evaluation.measures.memory
    length, tokens = printed_length(deployment), deployment.workload.total_tokens
    rows = []
    for rank in held.ranks:
        pool = max(0.0, rank.pool.mid)
        missing = f"− {quantity(-rank.pool.mid, 'B', DIGITS, binary=binary)}"
        rows.append(
            StageRow(
                rank.stage + 1,
                rank.layers,
                quantity(rank.weights.mid, "B", DIGITS, binary=binary),
                quantity(pool, "B", DIGITS, binary=binary) if rank.pool.mid >= 0 else missing,
                f"{rank.plan.pool_tokens(pool, length):,}",
                f"{rank.fitting(deployment, pool, tokens):,}",
                rank is held.tightest,
            )
        )
    return rows


def _why_two_lines(evaluation: Evaluation, binary: bool) -> str:
    """Why both token lines of vLLM are true of one pool, with this model's own numbers."""
    held = evaluation.measures.memory
    room = held.printing.plan
    printed = {line.id: line.value for line in held.log_lines}
    if not isinstance(room, BlockRoom) or room.plan is None or not room.plan.is_hybrid or "other_tokens" not in printed:
        return ""
    plan, pool, length = room.plan, max(0.0, held.printing.pool.mid), printed_length(evaluation.deployment)
    blocks, each = plan.blocks(pool), max(1, plan.blocks_of(length))
    if not blocks:
        return ""
    kinds = ", ".join(f"{kind.groups:,} of {kind.label}" for kind in plan.kinds)
    size = quantity(plan.block_bytes, "B", DIGITS, binary=binary)
    old, new = room.block_tokens_line(pool), room.concurrency_tokens_line(pool, length)
    return (
        f"Like layers stand in groups, {plan.groups:,} of them ({kinds}). A block of any group takes the same {size}, "
        f"so all {blocks:,} blocks come from one pool. The old line is blocks ÷ groups × the smallest block: "
        f"⌊{blocks:,} ÷ {plan.groups:,}⌋ × {plan.smallest_block_tokens:,} = {old:,} tokens, as if every group grew "
        f"with every token. The new line is concurrency × longest length: {length:,} tokens need {each:,} blocks, so "
        f"{blocks:,} ÷ {each:,} = {significant(blocks / each, 4)} such sequences, together {new:,} tokens. "
        "It is the same memory."
    )


def _why_no_start(evaluation: Evaluation, binary: bool) -> str:
    """Slots are allocated when llama.cpp starts, at its longest context: what is more than the card has is no start."""
    held = evaluation.measures.memory
    asked = next((line.value for line in held.log_lines if line.id == "pool"), 0.0)
    left = max(0.0, held.printing.pool.mid)
    if not isinstance(evaluation.deployment.engine.policy, LlamaCppPolicy) or asked <= left:
        return ""
    return (
        f"That is more than the {quantity(left, 'B', DIGITS, binary=binary)} that are left for it, so it would not "
        "start: set a shorter longest sequence, or fewer sequences at a time."
    )


def _compared(line: Line, binary: bool) -> Compared:
    def written(value: float) -> str:
        return quantity(value, line.unit, 4, binary=binary)

    low, mid, high = line.predicted.sides
    difference = line.difference
    if difference is None:
        told = ""
    elif abs(difference) < 5e-4:
        told = "0 %"
    else:
        told = f"{'+' if difference > 0 else '−'}{significant(100 * abs(difference), 3)} %"
    return Compared(
        line.label,
        written(line.logged),
        written(mid),
        "" if low == high else f"{written(low) if line.unit == 'B' else f'{low:,.0f}'} to {written(high)}",
        told,
        "inside" if line.is_inside else "outside",
        line.reason,
    )
