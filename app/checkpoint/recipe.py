"""Parts of a configuration put together to layers, and what a family is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from app.calc.model.architecture import LayerGroup, MultiTokenPrediction, SidePath
from app.calc.model.layers.parts import FeedForward, Mixer
from app.checkpoint import limits, spellings
from app.checkpoint.attention import Mixers
from app.checkpoint.feed_forward import Blocks
from app.checkpoint.frame import Choice, Frame, chosen, read_frame
from app.checkpoint.keys import Keys

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


@dataclass(frozen=True, slots=True)
class Family:
    """`model_types` are the values of the key by which its configurations are known, the first its usual one."""

    title: str
    model_types: tuple[str, ...]
    read: Reader

    @property
    def id(self) -> str:
        return self.model_types[0]


Pick = Callable[[Sequence[LayerGroup]], LayerGroup]
"""Which layer of the model the predicting layers are like."""
Duplicates = Callable[[Keys, Frame], int | None]
"""Copies of embedding and head that the published files carry."""


def last_layer(each: Sequence[LayerGroup]) -> LayerGroup:
    """They are like the last one."""
    return each[-1]


def first_layer(each: Sequence[LayerGroup]) -> LayerGroup:
    """They are like the first, dense one."""
    return each[0]


def no_duplicates(keys: Keys, frame: Frame) -> int | None:
    """The files hold embedding and head once."""
    return None


def joint_params(hidden_size: int, norms: int = 3) -> int:
    """The projection that joins embedding and hidden state, 2·h², and `norms` of h. DeepSeek-V3: 102,782,464."""
    return 2 * hidden_size * hidden_size + norms * hidden_size


def read_count(keys: Keys, names: Sequence[str] = spellings.MTP_LAYERS, assumed: int = 0, why: str = "") -> int:
    """How many predicting layers the files carry; `assumed` where no key says so, with the reason."""
    count = keys.maybe_whole("mtp_layers", names, limits.LAYERS, least=0)
    if count is None:
        if assumed:
            keys.ledger.assume("mtp_layers", assumed, why)
        return assumed
    return count


def predicting(
    *,
    names: Sequence[str] = spellings.MTP_LAYERS,
    pick: Pick = last_layer,
    norms: int = 3,
    duplicates: Duplicates = no_duplicates,
    assumed: int = 0,
    why: str = "",
) -> Mtp:
    """A reader of predicting layers that are each one layer of the model and a joint projection."""

    def read(keys: Keys, frame: Frame, each: Sequence[LayerGroup]) -> MultiTokenPrediction | None:
        count = read_count(keys, names, assumed, why)
        if not count:
            return None
        layer = replace(pick(each), count=count)
        joint = count * joint_params(frame.hidden_size, norms)
        return MultiTokenPrediction((layer,), joint, duplicates(keys, frame))

    return read


def embedding_and_head(keys: Keys, frame: Frame) -> int | None:
    """Embedding and head once more, as DeepSeek's own files have them."""
    copies = 2 * frame.vocab_size * frame.hidden_size
    keys.ledger.assume(
        "mtp_duplicates", copies, "the published files repeat embedding and head beside the predicting layer"
    )
    return copies


def early_glm(keys: Keys, frame: Frame) -> int | None:
    """GLM-4.5 repeats embedding and head, GLM-4.6 with its longer context does not."""
    if frame.max_position is not None and frame.max_position > 131_072:
        return None
    return embedding_and_head(keys, frame)


def advertised(keys: Keys, frame: Frame, each: Sequence[LayerGroup]) -> MultiTokenPrediction | None:
    """Keys that speak of predicting layers, of which the published files have none (MiniMax M2)."""
    names = ("use_mtp", "num_mtp_modules", "mtp_transformer_layers", "num_nextn_predict_layers")
    if keys.any_of(names):
        keys.ledger.notice("The keys speak of multi-token prediction, but the published files carry no such layers.")
    keys.passed_over(*names)
    return None
