"""What a model is made of, as the calculators see it: groups of like layers, an embedding and a head.

A layer kind is data (`app.calc.layers`). A group says how many layers are alike, so that an interleaved model is two
groups and a uniform one is a single group.

What sort of thing lets tokens see each other, and what a layer keeps of the past: for lists and drawings.

A model is named after the sort of its layers that departs furthest from attention over everything. A layer that attends
and carries a state at once is a recurrence that keeps a row for every position.
"""

import math
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

from app.calc.model.layers.compressed_attention import CompressedAttention
from app.calc.model.layers.experts import Experts
from app.calc.model.layers.grouped_attention import GroupedAttention
from app.calc.model.layers.latent_attention import LatentAttention, SpannedLatentAttention, SparseLatentAttention
from app.calc.model.layers.parts import FeedForward, Mixer, OperatorName, WeightGroup, Weights, matrix, vector
from app.calc.model.layers.span import Window
from app.calc.model.layers.sparse_attention import BlockSparseAttention, SelectedAttention
from app.calc.model.split import Split, SplitError


@dataclass(frozen=True, slots=True)
class SidePath:
    """Small matrices beside the usual ones: AltUp, LAuReL, per-layer inputs, hyper-connections; 16-bit everywhere.

    A table has `gathered` elements read of it for each token instead of all.
    """

    name: str
    params: int = 0
    vectors: int = 0
    gathered: int | None = None

    def weights(self) -> tuple[Weights, ...]:
        """The same, as parameters of an operator."""
        group, operator = WeightGroup.SIDE_PATHS, OperatorName.SIDE_PATHS
        if self.gathered is not None:
            return (Weights(operator, group, self.params, is_matrix=False, gathered=self.gathered),)
        return ((matrix(operator, group, self.params),) if self.params else ()) + vector(operator, group, self.vectors)


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """`count` layers of one kind; `norms` vectors of the hidden size in each.

    A layer may have no mixer (its attention was pruned) or no feed-forward block (a Nemotron-H layer is one or the
    other), or several blocks side by side. `unquantized` names groups of weights that a quantized checkpoint leaves
    in 16 bits in these layers.
    """

    count: int
    mixer: Mixer | None = None
    feed_forwards: tuple[FeedForward, ...] = ()
    norms: int = 2
    side_paths: tuple[SidePath, ...] = ()
    unquantized: frozenset[WeightGroup] = frozenset()

    @property
    def label(self) -> str:
        """Mixer and blocks in words."""
        parts = [self.mixer.label if self.mixer else "no attention", *(block.label for block in self.feed_forwards)]
        return " · ".join(parts)

    def split(self, split: Split) -> "LayerGroup":
        """The part of one GPU of a stage; norms and side paths are on every one.

        Raises:
            SplitError: something does not divide.
        """
        return replace(
            self,
            mixer=self.mixer.split(split.tensor) if self.mixer else None,
            feed_forwards=tuple(block.split(split) for block in self.feed_forwards),
        )


@dataclass(frozen=True, slots=True)
class MultiTokenPrediction:
    """Layers that guess further tokens. `joint_params` join the embedding to the hidden state and stay 16-bit.

    `duplicate_params` are copies of embedding and head that the files carry and no server loads twice.
    """

    layers: tuple[LayerGroup, ...]
    joint_params: int
    duplicate_params: int | None = None


@dataclass(frozen=True, slots=True)
class Architecture:
    """A decoder-only model. Sizes are elements; `max_position` is the context it was made for, in tokens.

    `order` gives the group of each layer from the input up; empty where it is not known. `learned_positions` are rows
    of a position table; `norm_bias` doubles every norm vector; `vision_params` are loaded beside the text model and
    stay idle while text is decoded. `mtp` is what is loaded of the multi-token-prediction layers: None for nothing. A
    part of a model need not hold the embedding, or the head with the norm before it.
    """

    name: str
    hidden_size: int
    vocab_size: int
    layers: tuple[LayerGroup, ...]
    order: tuple[int, ...] = ()
    tied_embeddings: bool = False
    max_position: int | None = None
    learned_positions: int = 0
    norm_bias: bool = False
    head_bias: bool = False
    vision_params: int = 0
    side_paths: tuple[SidePath, ...] = ()
    mtp: MultiTokenPrediction | None = None
    holds_embedding: bool = True
    holds_head: bool = True

    @property
    def n_layers(self) -> int:
        return sum(group.count for group in self.layers)

    @property
    def loaded_layers(self) -> tuple[LayerGroup, ...]:
        """Layers that weights and cache are held for: those of the model, and of multi-token prediction if loaded."""
        return self.layers if self.mtp is None else (*self.layers, *self.mtp.layers)

    @property
    def has_experts(self) -> bool:
        """True where a step does not read every weight."""
        return any(w.copies > 1 for g in self.layers for block in g.feed_forwards for w in block.weights(1))

    @property
    def chosen_experts(self) -> float:
        """Experts that a token goes through in a layer, in expectation; 0 for a dense model."""
        return max(
            (w.chosen for g in self.layers for b in g.feed_forwards for w in b.weights(1) if w.copies > 1), default=0.0
        )

    @property
    def attention_kind(self) -> str:
        """The kinds of its mixers in words, with a count where there are several."""
        counts: Counter[str] = Counter()
        for group in self.layers:
            if group.mixer is not None:
                counts[group.mixer.label] += group.count
        if not counts:
            return "no attention"
        if len(counts) == 1 and counts.total() == self.n_layers:
            return next(iter(counts))
        return "; ".join(f"{label} in {count} of {self.n_layers} layers" for label, count in counts.items())

    def split(self, split: Split) -> "Architecture":
        """The part of one GPU, all stages in a row: heads, inner widths, experts and vocabulary divided.

        Raises:
            SplitError: heads do not divide, or context ranks find too few copies of a cache.
        """
        if split.expert_gpus == 1:
            return self
        mtp = self.mtp
        part = replace(
            self,
            vocab_size=math.ceil(self.vocab_size / split.tensor),
            layers=tuple(group.split(split) for group in self.layers),
            mtp=mtp and replace(mtp, layers=tuple(group.split(split) for group in mtp.layers)),
        )
        for whole, divided in zip(self.loaded_layers, part.loaded_layers, strict=True):
            _check_copies(whole, divided, split)
        return part


def _check_copies(whole: LayerGroup, part: LayerGroup, split: Split) -> None:
    """Context ranks share out the tokens of what each of them would else hold a copy of."""
    if split.decode_context == 1 or whole.mixer is None or part.mixer is None:
        return
    for row, own in zip(whole.mixer.cache(), part.mixer.cache(), strict=True):
        copies = split.tensor * own.width // row.width
        if copies % split.decode_context:
            held = "once" if copies == 1 else f"{copies:,} times"
            raise SplitError(
                f"{split.decode_context:,} context ranks share out copies of a cache, and {split.tensor:,} tensor "
                f"ranks hold the {row.label} of {whole.mixer.label} {held}."
            )


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
