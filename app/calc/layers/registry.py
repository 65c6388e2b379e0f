"""Every layer kind by the name that catalog rows and custom models give it. A new kind is one line here."""

from collections.abc import Mapping
from types import MappingProxyType

from app.calc.layers.block_sparse_attention import BlockSparseAttention
from app.calc.layers.channel_mix import ChannelMix
from app.calc.layers.compressed_attention import CompressedAttention
from app.calc.layers.dense import DenseFeedForward
from app.calc.layers.experts import Experts
from app.calc.layers.gated_delta_net import GatedDeltaNet
from app.calc.layers.grouped_attention import GroupedAttention
from app.calc.layers.kimi_delta_attention import KimiDeltaAttention
from app.calc.layers.latent_attention import LatentAttention
from app.calc.layers.lightning_attention import LightningAttention
from app.calc.layers.mamba import Mamba
from app.calc.layers.mamba2 import Mamba2
from app.calc.layers.parallel_mamba2 import ParallelMamba2
from app.calc.layers.parts import FeedForward, Mixer
from app.calc.layers.rg_lru import RgLru
from app.calc.layers.rwkv6 import Rwkv6
from app.calc.layers.rwkv7 import Rwkv7
from app.calc.layers.short_convolution import ShortConvolution
from app.calc.layers.sparse_latent_attention import SparseLatentAttention

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
