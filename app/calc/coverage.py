"""Which weights a decode step reads: all of a dense model's, and of experts those that a token chose."""

from functools import lru_cache

from app.calc.architecture import Architecture
from app.calc.broadcast import Quantity
from app.calc.layers.parts import Weights
from app.calc.parameters import count_parameters, layer_weights, side_table_params, text_weight_bytes
from app.calc.weight_plan import WeightPlan


def step_weight_bytes(architecture: Architecture, plan: WeightPlan, tokens: Quantity) -> Quantity:
    """Bytes of the language model's weights, less the experts that none of a step's `tokens` chose, and less tables
    beside the embedding, of which rows are gathered. The embedding counts whole: it is the back-of-envelope's figure.

    Worked number: Qwen3-30B-A3B in bf16 is 61.06 GB; one token reads 8 of 128 experts a layer, 6.71 GB in all.
    """
    total: Quantity = text_weight_bytes(count_parameters(architecture), plan)
    total = total - side_table_params(architecture) * plan.wide.bytes_per_weight
    for weights, copy_bytes in _experts(architecture, plan):
        total = total - copy_bytes * (weights.copies - weights.touched(tokens))
    return total


@lru_cache(maxsize=256)
def _experts(architecture: Architecture, plan: WeightPlan) -> tuple[tuple[Weights, float], ...]:
    """Each stack of experts with the bytes of one of them, over all layers alike."""
    found = []
    for group in architecture.layers:
        for weights in layer_weights(group, architecture.hidden_size):
            if weights.is_choice:
                narrow = weights.is_matrix and weights.group not in group.unquantized
                layout = plan.layout(weights.group) if narrow else plan.wide
                found.append((weights, group.count * weights.params * layout.bytes_per_weight))
    return tuple(found)


def coverage(architecture: Architecture, tokens: Quantity) -> Quantity:
    """Share of a model's expert weights that so many tokens choose: 1 − (1 − k ÷ E)^B; 1 without experts.

    Worked number: 8 of 128 experts: one token reads 6.25 %, four tokens 22.8 %.
    """
    read: Quantity = 0.0
    held = 0.0
    for group in architecture.layers:
        for weights in layer_weights(group, architecture.hidden_size):
            if weights.is_choice:
                read = read + group.count * weights.params * weights.touched(tokens)
                held += group.count * weights.params * weights.copies
    return read / held if held else 1.0
