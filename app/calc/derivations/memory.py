"""The working of the memory numbers."""

import re
from dataclasses import replace

from app.calc.deployment import Deployment
from app.calc.derivation import SYMBOL, Explanation, Term, Working
from app.calc.dtypes import WeightLayout
from app.calc.measure import Measures
from app.calc.memory.cache import cache_shape
from app.calc.memory.capacity import printed_length
from app.calc.memory.engines.parts import MOST_CONCURRENT, Part
from app.calc.model.architecture import Architecture
from app.calc.model.parameters import count_parameters, weight_bytes
from app.calc.outputs import derivation
from app.calc.quantity import quantity

_SHAPES = "Shapes of the model's tensors; notes on the model in the catalog"
_KV_SHAPES = "Shapes of the keys and values; agrees with engine start-up logs to 0.02 % (median of 35)"


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
        _max_context(deployment, measures),
        _needed(deployment, measures),
    ]


def _weights(deployment: Deployment, measures: Measures) -> Explanation:
    """One product for each format: the parameters stored in it times the bytes of one, scales included."""
    path, value = "memory.per_gpu.weights_bytes", measures.memory.per_gpu.weights_bytes
    given, rank = deployment.engine.given.weights, measures.memory.tightest.rank
    if given is not None:
        loaded = (Term("W", "given in the scenario; it beats what is counted", given, "B"),)
        return derivation(path, "W", loaded, value, "The scenario")
    counts, plan = count_parameters(rank.architecture), deployment.precision.weights
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
        kept = " on one GPU" if deployment.split.gpus > 1 else ""
        terms += [
            Term(f"N{mark}", f"parameters{kept}: {what.removeprefix(', ')}", params, ""),
            Term(f"b{mark}", f"bytes of one, {layout.element}, scales included", layout.bytes_per_weight, "B"),
        ]
    padding = deployment.engine.policy.padding_bytes(rank.architecture, plan)
    if padding:
        parts.append("W_tiles")
        terms.append(Term("W_tiles", "what filling up whole tiles adds", padding, "B"))
    added = deployment.engine.policy.weights.interval(0.0).mid
    if added:
        parts.append("W_added")
        terms.append(Term("W_added", "what the allocator adds", added, "B"))
    if rank.draft is not None:
        parts.append("W_draft")
        drafted = weight_bytes(count_parameters(rank.draft.architecture), rank.draft.weights)
        terms.append(Term("W_draft", "weights of the draft model", drafted, "B"))
    formula, held = " + ".join(parts), measures.memory.tightest
    if (
        held.is_pool_given
        and held.weights.is_exact
        and held.weights.mid < deployment.engine.policy.weights.interval(rank.weights_bytes).mid
    ):
        formula = f"min({formula}, M − pool)"
        terms += [
            Term("M", "memory of the card", held.capacity_bytes, "B"),
            Term("pool", "the pool that was given, which what is only counted yields to", held.pool.mid, "B"),
        ]
    return derivation(path, formula, tuple(terms), value, _SHAPES)


def _kv_per_sequence(deployment: Deployment, measures: Measures) -> Explanation:
    parts, terms = _rows(deployment, deployment.architecture, "", deployment.workload.total_tokens)
    return derivation(
        "memory.kv_bytes_per_sequence",
        " + ".join(parts) or "0",
        tuple(terms),
        measures.memory.kv_bytes_per_sequence,
        _KV_SHAPES,
    )


def _rows(deployment: Deployment, architecture: Architecture, where: str, tokens: int) -> tuple[list[str], list[Term]]:
    """What a sequence of so many tokens keeps of an architecture, or of one GPU's part of it: summands and symbols."""
    kv_cache = deployment.precision.kv_cache
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
    return derivation(
        "memory.kv_bytes_per_token",
        "KV_sequence ÷ n",
        (
            Term("KV_sequence", "cache of one full-length sequence", held.kv_bytes_per_sequence, "B"),
            Term("n", "its tokens, prompt and answer", deployment.workload.total_tokens, "tokens"),
        ),
        held.kv_bytes_per_token,
        _KV_SHAPES,
    )


def _pool(deployment: Deployment, measures: Measures) -> Explanation:
    """As given; or in the engine's own formula."""
    held, engine, rank = measures.memory, deployment.engine, measures.memory.tightest
    path, value = "memory.per_gpu.kv_pool_bytes", measures.memory.per_gpu.kv_pool_bytes
    weights = Term("W", "weights", rank.weights.mid, "B")
    if engine.given.kv_pool is not None:
        terms: tuple[Term, ...] = (
            Term("pool", "given in the scenario; it beats a computed one", engine.given.kv_pool, "B"),
            Term("M", f"memory of the card, {deployment.memory_basis}", held.per_gpu.capacity_bytes, "B"),
            weights,
        )
        source = "The scenario; no more than the card has beside the weights"
        return derivation(path, "min(pool, max(0, M − W))", terms, value, source)
    sizes = {overhead.part: overhead for overhead in rank.overheads}
    known = {
        "M": Term("M", "memory that the engine sees", rank.seen_bytes, "B"),
        "u": Term("u", "share that the engine may use", engine.memory_utilization, ""),
        "W": weights,
    } | {
        symbol: Term(symbol, f"{words}, {'given' if sizes[part].is_given else 'assumed'}", sizes[part].bytes.mid, "B")
        for symbol, part, words in _PARTS
        if part in sizes
    }
    formula = engine.policy.pool_formula
    used = tuple(term for symbol, term in known.items() if re.search(rf"\b{symbol}\b", formula))
    return derivation(path, formula, used, value, _source(deployment))


_PARTS = (
    ("A", Part.ACTIVATION, "peak of the activations"),
    ("N", Part.NON_FRAMEWORK, "non-framework memory"),
    ("G", Part.GRAPHS, "CUDA graphs"),
)


def _on_gpu(deployment: Deployment, measures: Measures) -> list[Explanation]:
    """What one GPU holds of a sequence, as its engine hands it out; of an ideal one the rows of the heads it has."""
    held = measures.memory
    working = held.plan.explain_sequence(deployment.held_tokens)
    if working is None:
        if deployment.split.gpus == 1 and deployment.held_tokens == deployment.workload.total_tokens:
            return []
        tokens = -(-deployment.held_tokens // deployment.split.decode_context)
        parts, terms = _rows(deployment, held.tightest.rank.architecture, " on one GPU", tokens)
        working = Working(" + ".join(parts) or "0", tuple(terms))
    return [
        derivation(
            "memory.gpu_bytes_per_sequence",
            working.formula,
            working.terms,
            held.gpu_bytes_per_sequence,
            f"{deployment.engine.policy.name}; KV heads are divided, and copied where there are fewer than GPUs; "
            "latents and index keys are copied",
        )
    ]


def _pool_tokens(deployment: Deployment, measures: Measures) -> Explanation:
    held, length = measures.memory, printed_length(deployment)
    working = held.printing.plan.explain_tokens(max(0.0, held.printing.pool.mid), length)
    source = _source(deployment)
    return derivation("memory.kv_pool_tokens", working.formula, working.terms, held.kv_pool_tokens, source)


def _max_concurrency(deployment: Deployment, measures: Measures) -> Explanation:
    held, cap = measures.memory, deployment.engine.max_num_seqs
    own = held.tightest.own_bytes(deployment, held.per_gpu.kv_pool_bytes)
    working = _beside(held.plan.explain_fitting(own, deployment.held_tokens), held.shared_bytes)
    if held.tightest.reserved_bytes > held.per_gpu.kv_pool_bytes:
        label = "none: the slots' cache, allocated at the start, is more than the pool"
        working = Working("none", (Term("none", label, 0, ""),))
    formula, terms = working.formula, working.terms
    if cap is not None:
        formula, terms = f"min({formula}, S_most)", (*terms, Term("S_most", "sequences the engine runs", cap, ""))
    engines = deployment.replicas * deployment.split.data
    if engines > 1:
        formula, terms = f"{formula} × e", (*terms, Term("e", "replicas × data-parallel ranks", engines, ""))
    most = Term("most", "most that is looked at", MOST_CONCURRENT, "")
    return derivation(
        "memory.max_concurrency",
        f"min({formula}, most)",
        (*terms, most),
        held.max_concurrency,
        _source(deployment),
    )


def _max_context(deployment: Deployment, measures: Measures) -> Explanation:
    held = measures.memory
    path = "memory.max_context_tokens"
    if held.context_is_endless:
        terms: tuple[Term, ...] = (Term("c_model", "the model's own limit", held.max_context_tokens, "tokens"),)
        return derivation(path, "c_model", terms, held.max_context_tokens, "Every layer has a window")
    rank = held.shortest
    own, shared = rank.own_bytes(deployment, rank.pool.mid), deployment.shared_tokens
    working = _beside(rank.plan.explain_longest(own, held.rank_sequences), held.shared_bytes)
    formula, terms = working.formula, working.terms
    if shared and held.max_context_tokens:
        formula, terms = f"{formula} + x", (*terms, Term("x", "tokens that all have in common", shared, "tokens"))
    if deployment.engine.reserved_tokens is not None and not held.max_context_tokens:
        formula, terms = "none", (Term("none", "what is reserved for one finds no room", 0, "tokens"),)
    return derivation(path, formula, terms, held.max_context_tokens, _source(deployment))


def _needed(deployment: Deployment, measures: Measures) -> Explanation:
    held, rank = measures.memory, measures.memory.tightest
    back: tuple[Term, ...] = (
        Term("H", "what the engine holds back beside weights and cache", rank.held_back_bytes, "B"),
    )
    cache = "B × KV_gpu + X" if held.shared_bytes else "B × KV_gpu"
    formula = f"W + max(R, {cache}) + H" if rank.reserved_bytes else f"W + {cache} + H"
    if held.shared_bytes:
        back = (*back, Term("X", "cache of what all sequences have in common, once", held.shared_bytes, "B"))
    if rank.reserved_bytes:
        back = (*back, Term("R", "cache of all slots, allocated at the start", rank.reserved_bytes, "B"))
    return derivation(
        "memory.needed_bytes",
        formula,
        (
            Term("W", "weights", held.per_gpu.weights_bytes, "B"),
            Term("B", "sequences at a time on this GPU", held.rank_sequences, ""),
            Term("KV_gpu", "cache of one full-length sequence on one GPU", held.gpu_bytes_per_sequence, "B"),
            *back,
        ),
        held.needed_bytes,
        _source(deployment),
    )


def _beside(working: Working, shared_bytes: float) -> Working:
    """The same where the pool is what is left of it beside what all sequences share."""
    if not shared_bytes:
        return working
    label = f"cache pool, less {quantity(shared_bytes, 'B')} of what all have in common"
    return Working(working.formula, tuple(replace(t, label=label) if t.symbol == "pool" else t for t in working.terms))


def _source(deployment: Deployment) -> str:
    return f"How {deployment.engine.policy.name} divides a card; docs/memory.md"
