"""The working of the memory numbers."""

from app.calc.architecture import Architecture
from app.calc.deployment import Deployment
from app.calc.dtypes import WeightLayout
from app.calc.explanation import SYMBOL, Explanation, Term
from app.calc.kv_cache import cache_shape
from app.calc.measure import Measures
from app.calc.parameters import count_parameters

_SHAPES = "Shapes of the model's tensors; notes on the model in the catalog"
_KV_SHAPES = "Shapes of the keys and values; agrees with engine start-up logs to 0.02 % (median of 35)"
_IDEAL = "Ideal engine: nothing for activations, graphs or fragmentation"


def explain_memory(deployment: Deployment, measures: Measures) -> list[Explanation]:
    """Explanations of `memory`, in the order in which one number leads to the next."""
    return [
        _weights(deployment, measures),
        _kv_per_sequence(deployment, measures),
        _kv_per_token(deployment, measures),
        _pool(deployment, measures),
        *_on_gpu(deployment, measures),
        _pool_tokens(deployment, measures),
        _max_concurrency(deployment, measures),
        _max_context(measures),
        _needed(deployment, measures),
    ]


def _weights(deployment: Deployment, measures: Measures) -> Explanation:
    """One product for each format: the parameters stored in it times the bytes of one, scales included."""
    counts, plan = count_parameters(deployment.rank_architecture), deployment.precision.weights
    stored: dict[WeightLayout, int] = {}
    where: dict[WeightLayout, list[str]] = {}
    for group, count in [*counts.groups.items(), *counts.mtp.items()]:
        if count.matrices:
            layout = plan.layout(group)
            stored[layout] = stored.get(layout, 0) + count.matrices
            where.setdefault(layout, []).append(group.replace("_", " "))
        rest = count.unquantized + count.vectors
        stored[plan.wide] = stored.get(plan.wide, 0) + rest
    stored[plan.wide] = stored.get(plan.wide, 0) + counts.vision
    parts, terms = [], []
    for i, (layout, params) in enumerate(stored.items(), 1):
        mark = "" if len(stored) == 1 else f"_{i}"
        parts.append(f"N{mark} × b{mark}")
        names = list(dict.fromkeys(where.get(layout, [])))
        wide = layout == plan.wide
        what = "all" if len(stored) == 1 else ", ".join(names) + (", vectors and what stays wide" if wide else "")
        kept = " on one GPU" if deployment.tensor_parallel > 1 else ""
        terms += [
            Term(f"N{mark}", f"parameters{kept}: {what.removeprefix(', ')}", params, ""),
            Term(f"b{mark}", f"bytes of one, {layout.element}, scales included", layout.bytes_per_weight, "B"),
        ]
    return Explanation(
        "memory.per_gpu.weights_bytes",
        "Weights",
        " + ".join(parts),
        tuple(terms),
        measures.memory.per_gpu.weights_bytes,
        "B",
        _SHAPES,
    )


def _kv_per_sequence(deployment: Deployment, measures: Measures) -> Explanation:
    parts, terms = _rows(deployment, deployment.architecture, "")
    return Explanation(
        "memory.kv_bytes_per_sequence",
        "KV cache of one full-length sequence",
        " + ".join(parts) or "0",
        tuple(terms),
        measures.memory.kv_bytes_per_sequence,
        "B",
        _KV_SHAPES,
    )


def _rows(deployment: Deployment, architecture: Architecture, where: str) -> tuple[list[str], list[Term]]:
    """What a sequence keeps of an architecture, or of one GPU's part of it: the summands, and their symbols."""
    kv_cache, tokens = deployment.precision.kv_cache, deployment.workload.total_tokens
    shape = cache_shape(architecture)
    parts: list[str] = []
    terms: list[Term] = []
    for i, rows in enumerate(shape.terms, 1):
        mark = "" if len(shape.terms) == 1 else f"_{i}"
        stride = "" if rows.compression == 1 else f" ÷ s{mark}"
        width = SYMBOL.sub(rf"\g<0>{mark}", rows.working.formula.replace("{L}", "L"))
        parts.append(f"{width} × b × c{mark}{stride}")
        kept = "the whole context" if rows.span.saturates_at > tokens else "a window of it"
        terms.append(Term(f"L{mark}", f"layers that keep {rows.label}", rows.layers, ""))
        terms += [Term(f"{symbol}{mark}", f"{label}{where}", value, "") for symbol, label, value in rows.working.terms]
        terms.append(Term(f"c{mark}", f"tokens kept: {kept}", float(rows.span.kept(float(tokens))), "tokens"))
        if stride:
            terms.append(Term(f"s{mark}", "tokens that one row stands for", rows.compression, "tokens"))
    if parts:
        terms.append(Term("b", f"bytes of one {kv_cache} element", kv_cache.bytes, "B"))
    for i, state in enumerate(shape.states, 1):
        parts.append(f"S_{i}")
        terms.append(
            Term(f"S_{i}", f"{state.label} of {state.layers:,} layers, {state.dtype}{where}", state.bytes, "B")
        )
    return parts, terms


def _kv_per_token(deployment: Deployment, measures: Measures) -> Explanation:
    held = measures.memory
    return Explanation(
        "memory.kv_bytes_per_token",
        "KV cache of one token",
        "KV_sequence ÷ n",
        (
            Term("KV_sequence", "cache of one full-length sequence", held.kv_bytes_per_sequence, "B"),
            Term("n", "its tokens, prompt and answer", deployment.workload.total_tokens, "tokens"),
        ),
        held.kv_bytes_per_token,
        "B",
        _KV_SHAPES,
    )


def _pool(deployment: Deployment, measures: Measures) -> Explanation:
    held, engine = measures.memory, deployment.engine
    if engine.kv_pool_bytes is not None:
        return Explanation(
            "memory.per_gpu.kv_pool_bytes",
            "Cache pool",
            "min(pool, max(0, M − W))",
            (
                Term("pool", "given in the scenario; it beats a computed one", engine.kv_pool_bytes, "B"),
                Term("M", f"memory of the card, {deployment.memory_basis}", held.per_gpu.capacity_bytes, "B"),
                Term("W", "weights", held.per_gpu.weights_bytes, "B"),
            ),
            held.per_gpu.kv_pool_bytes,
            "B",
            "The scenario; no more than the card has beside the weights",
        )
    return Explanation(
        "memory.per_gpu.kv_pool_bytes",
        "Cache pool",
        "max(0, M × u − W)",
        (
            Term("M", f"memory of the card, {deployment.memory_basis}", held.per_gpu.capacity_bytes, "B"),
            Term("u", "share that the engine may use", engine.memory_utilization, ""),
            Term("W", "weights", held.per_gpu.weights_bytes, "B"),
        ),
        held.per_gpu.kv_pool_bytes,
        "B",
        _IDEAL,
    )


def _on_gpu(deployment: Deployment, measures: Measures) -> list[Explanation]:
    """What one of several GPUs holds of a sequence: rows of the heads it has, whole where they belong to no head."""
    if deployment.tensor_parallel == 1:
        return []
    parts, terms = _rows(deployment, deployment.rank_architecture, " on one GPU")
    return [
        Explanation(
            "memory.gpu_bytes_per_sequence",
            "KV cache of one full-length sequence on one GPU",
            " + ".join(parts) or "0",
            tuple(terms),
            measures.memory.gpu_bytes_per_sequence,
            "B",
            "KV heads are divided, and copied where there are fewer than GPUs; latents and index keys are copied",
        )
    ]


def _sequence_term(deployment: Deployment, measures: Measures) -> Term:
    """The cache of a sequence as the pool of one GPU sees it; a symbol of its own where that is only a part."""
    held, label = measures.memory.gpu_bytes_per_sequence, "cache of one full-length sequence"
    if deployment.tensor_parallel == 1:
        return Term("KV_sequence", label, held, "B")
    return Term("KV_gpu", f"{label} on one GPU", held, "B")


def _pool_tokens(deployment: Deployment, measures: Measures) -> Explanation:
    held, sequence = measures.memory, _sequence_term(deployment, measures)
    return Explanation(
        "memory.kv_pool_tokens",
        "Tokens in the pool",
        f"⌊pool ÷ ({sequence.symbol} ÷ n)⌋",
        (
            Term("pool", "cache pool", held.per_gpu.kv_pool_bytes, "B"),
            sequence,
            Term("n", "its tokens, prompt and answer", deployment.workload.total_tokens, "tokens"),
        ),
        held.kv_pool_tokens,
        "tokens",
        _IDEAL,
    )


def _max_concurrency(deployment: Deployment, measures: Measures) -> Explanation:
    held, cap = measures.memory, deployment.engine.max_num_seqs
    sequence = _sequence_term(deployment, measures)
    terms = [Term("pool", "cache pool", held.per_gpu.kv_pool_bytes, "B"), sequence]
    formula = f"⌊pool ÷ {sequence.symbol}⌋"
    if cap is not None:
        formula = f"min({formula}, S)"
        terms.append(Term("S", "sequences the engine runs at a time", cap, ""))
    return Explanation(
        "memory.max_concurrency",
        "Sequences that fit at full length",
        formula,
        tuple(terms),
        held.max_concurrency,
        "",
        _IDEAL,
    )


def _max_context(measures: Measures) -> Explanation:
    held, limit = measures.memory, measures.memory.context_limit
    where = ("memory.max_context_tokens", "Longest context at this concurrency")
    if limit is None:
        terms: tuple[Term, ...] = (Term("c_model", "the model's own limit", held.max_context_tokens, "tokens"),)
        return Explanation(*where, "c_model", terms, held.max_context_tokens, "tokens", "Every layer has a window")
    formula = "⌊pool ÷ B ÷ r⌋"
    terms = (
        Term("pool", "cache pool", held.per_gpu.kv_pool_bytes, "B"),
        Term("B", "sequences that share it", held.running_sequences, ""),
        Term("r", "cache that one more token adds", limit.bytes_per_token, "B"),
    )
    if limit.from_tokens:
        formula = "max(0, ⌊c_w + (pool ÷ B − KV_w) ÷ r⌋)"
        terms += (
            Term("c_w", "where the last window is full", limit.from_tokens, "tokens"),
            Term("KV_w", "cache held there", limit.from_bytes, "B"),
        )
    elif limit.from_bytes:
        formula = "max(0, ⌊(pool ÷ B − S) ÷ r⌋)"
        terms += (Term("S", "states, which a sequence holds before its first token", limit.from_bytes, "B"),)
    return Explanation(*where, formula, terms, held.max_context_tokens, "tokens", _IDEAL)


def _needed(deployment: Deployment, measures: Measures) -> Explanation:
    held, sequence = measures.memory, _sequence_term(deployment, measures)
    return Explanation(
        "memory.needed_bytes",
        "Memory in use when every sequence is at its full length",
        f"W + B × {sequence.symbol}",
        (
            Term("W", "weights", held.per_gpu.weights_bytes, "B"),
            Term("B", "sequences at a time", held.running_sequences, ""),
            sequence,
        ),
        held.needed_bytes,
        "B",
        _IDEAL,
    )
