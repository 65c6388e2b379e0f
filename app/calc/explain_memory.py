"""The working of the memory numbers."""

from app.calc.deployment import Deployment
from app.calc.explanation import Explanation, Term
from app.calc.kv_cache import cached_tokens
from app.calc.measure import Measures
from app.calc.parameters import count_parameters, unquantized_bytes_per_weight

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
        _pool_tokens(measures),
        _max_concurrency(deployment, measures),
        _max_context(measures),
        _needed(measures),
    ]


def _weights(deployment: Deployment, measures: Measures) -> Explanation:
    counts, weights = count_parameters(deployment.architecture), deployment.precision.weights
    rest = unquantized_bytes_per_weight(weights)
    return Explanation(
        "memory.per_gpu.weights_bytes",
        "Weights",
        "N_layers × b_layers + N_rest × b_rest",
        (
            Term("N_layers", "parameters of the layers' matrices", counts.matrices, ""),
            Term("b_layers", f"bytes of one in {weights}, scales included", weights.bytes_per_weight, "B"),
            Term("N_rest", "embedding, head, norms, biases and vision tower", counts.unquantized, ""),
            Term("b_rest", "bytes of one; they are not quantized", rest, "B"),
        ),
        measures.memory.per_gpu.weights_bytes,
        "B",
        _SHAPES,
    )


def _kv_per_sequence(deployment: Deployment, measures: Measures) -> Explanation:
    kv_cache, tokens = deployment.precision.kv_cache, deployment.workload.total_tokens
    groups = deployment.architecture.layers
    parts, terms = [], []
    for i, group in enumerate(groups, 1):
        mark = "" if len(groups) == 1 else f"_{i}"
        parts.append(f"2 × L{mark} × H_kv{mark} × d{mark} × b × c{mark}")
        attention = group.attention
        kept = "tokens kept: the whole context" if attention.window is None else "tokens kept: context or window"
        terms += [
            Term(f"L{mark}", "layers", group.count, ""),
            Term(f"H_kv{mark}", "KV heads", attention.n_kv_heads, ""),
            Term(f"d{mark}", "width of a head", attention.head_dim, ""),
            Term(f"c{mark}", kept, float(cached_tokens(group, tokens)), "tokens"),
        ]
    terms.append(Term("b", f"bytes of one {kv_cache} element", kv_cache.bytes, "B"))
    return Explanation(
        "memory.kv_bytes_per_sequence",
        "KV cache of one full-length sequence",
        " + ".join(parts),
        tuple(terms),
        measures.memory.kv_bytes_per_sequence,
        "B",
        _KV_SHAPES,
    )


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


def _pool_tokens(measures: Measures) -> Explanation:
    held = measures.memory
    return Explanation(
        "memory.kv_pool_tokens",
        "Tokens in the pool",
        "⌊pool ÷ KV_token⌋",
        (
            Term("pool", "cache pool", held.per_gpu.kv_pool_bytes, "B"),
            Term("KV_token", "cache of one token", held.kv_bytes_per_token, "B"),
        ),
        held.kv_pool_tokens,
        "tokens",
        _IDEAL,
    )


def _max_concurrency(deployment: Deployment, measures: Measures) -> Explanation:
    held, cap = measures.memory, deployment.engine.max_num_seqs
    terms = [
        Term("pool", "cache pool", held.per_gpu.kv_pool_bytes, "B"),
        Term("KV_sequence", "cache of one full-length sequence", held.kv_bytes_per_sequence, "B"),
    ]
    formula = "⌊pool ÷ KV_sequence⌋"
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
        formula = "⌊c_w + (pool ÷ B − KV_w) ÷ r⌋"
        terms += (
            Term("c_w", "where the last window is full", limit.from_tokens, "tokens"),
            Term("KV_w", "cache held there", limit.from_bytes, "B"),
        )
    return Explanation(*where, formula, terms, held.max_context_tokens, "tokens", _IDEAL)


def _needed(measures: Measures) -> Explanation:
    held = measures.memory
    return Explanation(
        "memory.needed_bytes",
        "Memory in use when every sequence is at its full length",
        "W + B × KV_sequence",
        (
            Term("W", "weights", held.per_gpu.weights_bytes, "B"),
            Term("B", "sequences at a time", held.running_sequences, ""),
            Term("KV_sequence", "cache of one full-length sequence", held.kv_bytes_per_sequence, "B"),
        ),
        held.needed_bytes,
        "B",
        _IDEAL,
    )
