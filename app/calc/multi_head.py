"""What the cache would be with plain multi-head attention: the yardstick that every saving is measured by.

Every layer that mixes tokens keeps a key and a value for each of its query heads, at their whole width, for every
position. A recurrent layer counts as the model's widest attention layer. Nothing is shared, compressed or windowed.
Limits: nobody trained that model; the figure says what its cache would take, not how well it would answer.
"""

from functools import lru_cache

from app.calc.architecture import Architecture
from app.calc.broadcast import Quantity
from app.calc.dtypes import Dtype
from app.calc.layers.block_sparse_attention import BlockSparseAttention
from app.calc.layers.compressed_attention import CompressedAttention
from app.calc.layers.grouped_attention import GroupedAttention
from app.calc.layers.latent_attention import LatentAttention
from app.calc.layers.parallel_mamba2 import ParallelMamba2
from app.calc.layers.parts import Mixer
from app.calc.layers.selected_attention import SelectedAttention
from app.calc.layers.spanned_latent_attention import SpannedLatentAttention
from app.calc.layers.sparse_latent_attention import SparseLatentAttention


@lru_cache(maxsize=512)
def multi_head_elements_per_token(architecture: Architecture) -> int | None:
    """Elements that one token adds over all layers; None for a model without any attention to measure by.

    Worked numbers: Llama-3.1-8B has 32 × 32 × (128 + 128) = 262,144, four times its grouped cache. DeepSeek-V3 has
    61 × 128 × (192 + 128) = 2,498,560, against 61 × 576 = 35,136 latent ones.
    """
    widths = [(group.count, _key_and_value(group.mixer)) for group in architecture.layers if group.mixer]
    widest = max((width for _, width in widths if width is not None), default=None)
    if widest is None:
        return None
    return sum(count * (widest if width is None else width) for count, width in widths)


def multi_head_bytes_per_sequence(
    architecture: Architecture, context_tokens: Quantity, kv_cache: Dtype
) -> Quantity | None:
    """Bytes of one sequence with that cache: elements a token · b · tokens."""
    elements = multi_head_elements_per_token(architecture)
    return None if elements is None else elements * kv_cache.bytes * context_tokens


def _key_and_value(mixer: Mixer | None) -> int | None:
    """Keys and values of all query heads of one layer and token; None for a recurrence."""
    if isinstance(mixer, (BlockSparseAttention, ParallelMamba2, SelectedAttention)):
        mixer = mixer.attention
    if isinstance(mixer, (SparseLatentAttention, SpannedLatentAttention)):
        mixer = mixer.latent
    if isinstance(mixer, GroupedAttention):
        return mixer.query_width + mixer.output_width
    if isinstance(mixer, LatentAttention):
        return mixer.n_heads * (mixer.nope_dim + mixer.rope_dim + mixer.v_dim)
    if isinstance(mixer, CompressedAttention):
        return 2 * mixer.n_heads * mixer.head_dim
    return None
