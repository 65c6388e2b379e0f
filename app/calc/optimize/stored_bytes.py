"""The working of what is stored: weights by layout with their scales, and the cache of a sequence by kind of row."""

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.derivation import Explanation
from app.calc.dtypes import BITS_PER_BYTE, Dtype, WeightLayout
from app.calc.memory.cache import cache_shape, kv_bytes_per_sequence
from app.calc.model.architecture import Architecture
from app.calc.model.parameters import WeightPlan, count_parameters, weight_bytes
from app.calc.optimize.sides import working

_WEIGHTS = "Parameters by group, counted from the shapes; formats as their specifications lay them out"
_CACHE = "Shapes of the keys, values and states, as counted in docs/memory.md"


def elements_by_layout(architecture: Architecture, plan: WeightPlan) -> dict[WeightLayout, int]:
    """Parameters of everything loaded, by how they are stored.

    Worked number: Llama-3.1-8B in FP8 has 6,979,321,856 in 8 bits and 1,050,939,392 in 16.
    """
    counts = count_parameters(architecture)
    found = {plan.wide: counts.vision}
    for groups in (counts.groups, counts.mtp):
        for group, count in groups.items():
            layout = plan.layout(group)
            found[layout] = found.get(layout, 0) + count.matrices
            found[plan.wide] += count.unquantized + count.vectors
    return {layout: n for layout, n in found.items() if n}


def scale_bytes(architecture: Architecture, plan: WeightPlan) -> float:
    """Bytes of the scales and zero points among the weights."""
    return sum(
        n * layout.scale_bits / layout.block_elements / BITS_PER_BYTE
        for layout, n in elements_by_layout(architecture, plan).items()
    )


def explain_weights(id_: str, architecture: Architecture, plan: WeightPlan) -> Explanation:
    """Σ parameters × bytes each, scales included."""
    terms: list[tuple[str, str, float, str]] = []
    parts = []
    for place, (layout, n) in enumerate(elements_by_layout(architecture, plan).items(), 1):
        bits = layout.element.bits
        terms.append((f"N_{place}", f"parameters stored in {bits} bits", n, ""))
        terms.append((f"b_{place}", f"bytes of each: {layout.description}", layout.bytes_per_weight, "B"))
        parts.append(f"N_{place} × b_{place}")
    value = weight_bytes(count_parameters(architecture), plan)
    return working(id_, "Weights, scales included", " + ".join(parts), terms, (value, "B", _WEIGHTS))


def explain_sequence(id_: str, label: str, architecture: Architecture, tokens: int, kv_cache: Dtype) -> Explanation:
    """Σ elements a token × tokens kept × bytes, and the states."""
    shape = cache_shape(architecture)
    terms: list[tuple[str, str, float, str]] = []
    parts = []
    for place, term in enumerate(shape.terms, 1):
        kept = scalar(term.span.kept(float(tokens)))
        terms.append((f"e_{place}", f"elements that a token adds: {term.label}", term.elements_per_token, ""))
        terms.append((f"n_{place}", "tokens kept of them", kept, "tokens"))
        parts.append(f"e_{place} × n_{place} × b")
    if parts:
        terms.append(("b", f"bytes of an element in {kv_cache.upper()}", kv_cache.bytes, "B"))
    if shape.state_bytes or not parts:
        terms.append(("S", "recurrent states", shape.state_bytes, "B"))
        parts.append("S")
    value = scalar(kv_bytes_per_sequence(architecture, float(tokens), kv_cache))
    return working(id_, label, " + ".join(parts), terms, (value, "B", _CACHE))


def explain_cache_gain(off: Deployment, on: Deployment) -> tuple[Explanation, ...]:
    """How many times less a whole sequence takes; nothing where no cache grows, or it stays as wide as it was."""
    architecture, tokens = on.architecture, float(on.workload.total_tokens)
    states = cache_shape(architecture).state_bytes
    wide, narrow = off.precision.kv_cache, on.precision.kv_cache
    before, after = (scalar(kv_bytes_per_sequence(architecture, tokens, dtype)) for dtype in (wide, narrow))
    if before <= states or wide is narrow:
        return ()
    terms = (
        ("E", "elements of keys and values of a whole sequence", (before - states) / wide.bytes, ""),
        ("b", f"bytes of one in {wide.upper()}", wide.bytes, "B"),
        ("c", f"bytes of one in {narrow.upper()}", narrow.bytes, "B"),
        ("S", "recurrent states, as wide as they were", states, "B"),
    )
    formula, label = "(E × b + S) ÷ (E × c + S)", "Gain on the cache of a whole sequence"
    return (working("quantization.cache_gain", label, formula, terms, (before / after, "", _CACHE)),)
