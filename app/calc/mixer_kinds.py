"""What sort of thing lets tokens see each other, and what a layer keeps of the past: for lists and drawings.

A model is named after the sort of its layers that departs furthest from attention over everything. A layer that attends
and carries a state at once is a recurrence that keeps a row for every position.
"""

from enum import StrEnum
from math import inf

from app.calc.architecture import Architecture, LayerGroup
from app.calc.layers.block_sparse_attention import BlockSparseAttention
from app.calc.layers.compressed_attention import CompressedAttention
from app.calc.layers.experts import Experts
from app.calc.layers.grouped_attention import GroupedAttention
from app.calc.layers.latent_attention import LatentAttention
from app.calc.layers.parts import Mixer
from app.calc.layers.selected_attention import SelectedAttention
from app.calc.layers.span import Window
from app.calc.layers.spanned_latent_attention import SpannedLatentAttention
from app.calc.layers.sparse_latent_attention import SparseLatentAttention


class MixerKind(StrEnum):
    """Sorts of mixers, from the plain one to those that depart furthest from it."""

    NONE = "none"
    FULL = "full"
    WINDOW = "window"
    CHUNK = "chunk"
    LATENT = "latent"
    SPARSE = "sparse"
    COMPRESSED = "compressed"
    RECURRENT = "recurrent"


class Keeps(StrEnum):
    """What one layer keeps of a sequence: a row a position, rows for a part of them, a state, or nothing."""

    EVERYTHING = "everything"
    PART = "part"
    STATE = "state"
    NOTHING = "nothing"


class Blocks(StrEnum):
    """What of a layer works on each token alone."""

    EXPERTS = "experts"
    DENSE = "dense"
    NONE = "none"


def mixer_kind(mixer: Mixer | None) -> MixerKind:
    """The sort of one layer's mixer; a window-only layer of compressed attention is a window."""
    if mixer is None:
        return MixerKind.NONE
    if isinstance(mixer, (SparseLatentAttention, BlockSparseAttention, SelectedAttention)):
        return MixerKind.SPARSE
    if isinstance(mixer, LatentAttention):
        return MixerKind.LATENT
    if isinstance(mixer, SpannedLatentAttention):
        return MixerKind.WINDOW if isinstance(mixer.span, Window) else MixerKind.CHUNK
    if isinstance(mixer, CompressedAttention):
        return MixerKind.WINDOW if mixer.compression is None else MixerKind.COMPRESSED
    if isinstance(mixer, GroupedAttention):
        if mixer.window is not None:
            return MixerKind.WINDOW
        return MixerKind.FULL if mixer.chunk is None else MixerKind.CHUNK
    return MixerKind.RECURRENT


def model_kind(architecture: Architecture) -> MixerKind:
    """The sort that departs furthest: one recurrent layer makes a hybrid, one window makes a model with windows."""
    found = {mixer_kind(group.mixer) for group in architecture.layers}
    return max(found, key=list(MixerKind).index)


def keeps(mixer: Mixer | None) -> Keeps:
    """What a layer keeps of a sequence that grows for ever."""
    if mixer is None:
        return Keeps.NOTHING
    rows = mixer.cache()
    if any(row.span.saturates_at == inf and row.compression == 1 for row in rows):
        return Keeps.EVERYTHING
    if rows:
        return Keeps.PART
    return Keeps.STATE if mixer.state() else Keeps.NOTHING


def blocks(group: LayerGroup) -> Blocks:
    """Experts where any block has them, else dense where there is a block at all."""
    if any(isinstance(block, Experts) for block in group.feed_forwards):
        return Blocks.EXPERTS
    return Blocks.DENSE if group.feed_forwards else Blocks.NONE
