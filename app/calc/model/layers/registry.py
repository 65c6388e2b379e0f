"""Every layer kind by the name that catalog rows and custom models give it. A new kind is one line here."""

from collections.abc import Mapping
from types import MappingProxyType

from app.calc.model.layers.compressed_attention import CompressedAttention
from app.calc.model.layers.dense import ChannelMix, DenseFeedForward
from app.calc.model.layers.experts import Experts
from app.calc.model.layers.grouped_attention import GroupedAttention
from app.calc.model.layers.latent_attention import LatentAttention, SparseLatentAttention
from app.calc.model.layers.mamba import Mamba, Mamba2, ParallelMamba2
from app.calc.model.layers.parts import FeedForward, Mixer
from app.calc.model.layers.recurrent import GatedDeltaNet, KimiDeltaAttention, LightningAttention
from app.calc.model.layers.rg_lru import RgLru
from app.calc.model.layers.rwkv import Rwkv6, Rwkv7
from app.calc.model.layers.short_convolution import ShortConvolution
from app.calc.model.layers.sparse_attention import BlockSparseAttention

MIXERS: Mapping[str, type[Mixer]] = MappingProxyType(
    {
        "grouped": GroupedAttention,
        "latent": LatentAttention,
        "sparse_latent": SparseLatentAttention,
        "block_sparse": BlockSparseAttention,
        "compressed": CompressedAttention,
        "gated_delta_net": GatedDeltaNet,
        "kimi_delta": KimiDeltaAttention,
        "lightning": LightningAttention,
        "mamba": Mamba,
        "mamba2": Mamba2,
        "parallel_mamba2": ParallelMamba2,
        "rg_lru": RgLru,
        "rwkv6": Rwkv6,
        "rwkv7": Rwkv7,
        "short_convolution": ShortConvolution,
    }
)
FEED_FORWARDS: Mapping[str, type[FeedForward]] = MappingProxyType(
    {"dense": DenseFeedForward, "experts": Experts, "channel_mix": ChannelMix}
)


def kind_of(part: Mixer | FeedForward) -> str:
    """The name under which the part's class is registered.

    Raises:
        KeyError: it is not.
    """
    for registry in (MIXERS, FEED_FORWARDS):
        for name, kind in registry.items():
            if type(part) is kind:
                return name
    raise KeyError(type(part).__name__)
