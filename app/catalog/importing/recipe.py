"""A family as a recipe: how its mixers, its blocks and what is around them are read, put together layer by layer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from app.calc.architecture import LayerGroup, MultiTokenPrediction, SidePath
from app.calc.layers.parts import FeedForward, Mixer
from app.catalog.importing.feed_forward import Blocks
from app.catalog.importing.frame import Choice, Frame, chosen, read_frame
from app.catalog.importing.grouped import Mixers
from app.catalog.importing.keys import Keys

Depth = Callable[[Keys], int]
Mtp = Callable[[Keys, Frame, Sequence[LayerGroup]], MultiTokenPrediction | None]
"""Reads the multi-token-prediction layers, given the layers of the model one by one."""
Positions = Callable[[Keys, Frame], int]


@dataclass(frozen=True, slots=True)
class Body:
    """What a family's reader makes of a configuration: everything but names and formats."""

    frame: Frame
    layers: tuple[LayerGroup, ...]
    order: tuple[int, ...]
    norm_bias: bool = False
    head_bias: bool = False
    learned_positions: int = 0
    side_paths: tuple[SidePath, ...] = ()
    mtp: MultiTokenPrediction | None = None


Reader = Callable[[Keys], Body]
"""Reads a whole model from the block of its language model."""


def stacked(each: Sequence[LayerGroup]) -> tuple[tuple[LayerGroup, ...], tuple[int, ...]]:
    """Like layers together, in order of first appearance, and the group of each layer from the input up."""
    numbers: dict[LayerGroup, int] = {}
    order = tuple(numbers.setdefault(layer, len(numbers)) for layer in each)
    return tuple(replace(layer, count=order.count(number)) for layer, number in numbers.items()), order


def layers_of(
    mixers: Sequence[Mixer | None],
    blocks: Sequence[tuple[FeedForward, ...]],
    norms: int,
    side_paths: tuple[SidePath, ...] = (),
) -> list[LayerGroup]:
    """One group of one layer for each pair; equal ones are the same object."""
    kinds: dict[tuple[int, int], LayerGroup] = {}
    each = []
    for mixer, block in zip(mixers, blocks, strict=True):
        kind = (id(mixer), id(block))
        if kind not in kinds:
            kinds[kind] = LayerGroup(1, mixer, block, norms=norms, side_paths=side_paths)
        each.append(kinds[kind])
    return each


@dataclass(frozen=True, slots=True)
class Recipe:
    """A decoder of mixers and blocks; `tied` is the default of its class for the head.

    `norms` are vectors of the hidden size in a layer. `passes` are keys that its class does not act on.
    """

    mixers: Mixers
    blocks: Blocks
    norms: int | Callable[[Keys], int] = 2
    norm_bias: Choice = False
    head_bias: Choice = False
    tied: bool = False
    positions: Positions | None = None
    layer_paths: tuple[SidePath, ...] = ()
    embedding_norms: int = 0
    mtp: Mtp | None = None
    depth: Depth | None = None
    passes: tuple[str, ...] = field(default=())

    def __call__(self, keys: Keys) -> Body:
        """The body that `keys` describe.

        Raises:
            ConfigError: with the key that is missing, impossible or contradictory.
        """
        frame = read_frame(keys, tied=self.tied, n_layers=self.depth(keys) if self.depth else None)
        mixers = self.mixers(keys, frame)
        blocks = self.blocks(keys, frame)
        keys.passed_over(*self.passes)
        norms = self.norms if isinstance(self.norms, int) else self.norms(keys)
        each = layers_of(mixers, blocks, norms, self.layer_paths)
        layers, order = stacked(each)
        norm_bias = chosen(keys, self.norm_bias)
        embedding_norm = self.embedding_norms * frame.hidden_size * (2 if norm_bias else 1)
        return Body(
            frame,
            layers,
            order,
            norm_bias=norm_bias,
            head_bias=chosen(keys, self.head_bias),
            learned_positions=self.positions(keys, frame) if self.positions else 0,
            side_paths=(SidePath("embedding norm", 0, vectors=embedding_norm),) if embedding_norm else (),
            mtp=self.mtp(keys, frame, each) if self.mtp else None,
        )
