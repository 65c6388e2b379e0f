"""What loading adds to weights: kernels that want their matrices in whole tiles."""

from app.calc.architecture import Architecture
from app.calc.dtypes import WeightFormat
from app.calc.layers.experts import ExpertGroup, Experts
from app.calc.layers.parts import WeightGroup
from app.calc.weight_plan import WeightPlan

HIDDEN_TILE = 256
WIDTH_TILE = 64


def mxfp4_padding_bytes(part: Architecture, plan: WeightPlan) -> float:
    """Bytes that padding adds to experts in MXFP4: the hidden size to 256, the width of an expert to 64.

    Worked number: gpt-oss-120b on 4 GPUs, 3,072 × 768 for 2,880 × 720: 2.0 GiB; a log has 17.22 GiB against the
    15.23 GiB of the tensors.
    """
    layout = plan.layout(WeightGroup.ROUTED_EXPERTS)
    if layout != WeightFormat.MXFP4.layout:
        return 0.0
    added = 0
    for group in part.loaded_layers:
        for block in group.feed_forwards:
            experts = block.whole if isinstance(block, ExpertGroup) else block
            if not isinstance(experts, Experts):
                continue
            hidden, width = experts.latent_size or part.hidden_size, experts.intermediate_size
            tiles = -(-hidden // HIDDEN_TILE) * HIDDEN_TILE * -(-width // WIDTH_TILE) * WIDTH_TILE
            groups = block.groups if isinstance(block, ExpertGroup) else 1
            matrices = 3 if experts.gated else 2
            added += group.count * -(-experts.n_experts // groups) * matrices * (tiles - hidden * width)
    return added * layout.bytes_per_weight
