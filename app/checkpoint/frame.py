"""What surrounds the layers of a model, and which layers have experts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.checkpoint import limits, spellings
from app.checkpoint.keys import Keys


@dataclass(frozen=True, slots=True)
class Switch:
    """A key that says yes or no, and what the model's class takes where it is absent."""

    names: tuple[str, ...]
    default: bool = False

    def read(self, keys: Keys) -> bool:
        return keys.flag(self.names[0], self.names, default=self.default)


Choice = bool | Switch
"""Something that a family always or never has, or that a key decides."""


def chosen(keys: Keys, choice: Choice) -> bool:
    """The choice made."""
    return choice.read(keys) if isinstance(choice, Switch) else choice


@dataclass(frozen=True, slots=True)
class Frame:
    """Sizes of the whole model."""

    hidden_size: int
    n_layers: int
    vocab_size: int
    max_position: int | None
    tied_embeddings: bool


def read_frame(keys: Keys, *, tied: bool, n_layers: int | None = None) -> Frame:
    """The frame; `tied` is the class's default, `n_layers` the depth where no plain number gives it.

    Raises:
        ConfigError: a size is missing or impossible.
    """
    hidden = keys.whole("hidden_size", spellings.HIDDEN, limits.HIDDEN)
    if n_layers is None:
        n_layers = keys.whole("n_layers", spellings.LAYERS, limits.LAYERS)
    vocabulary = keys.whole("vocab_size", spellings.VOCABULARY, limits.VOCABULARY)
    context = _context(keys)
    is_tied = keys.flag("tied_embeddings", ("tie_embedding", "tie_word_embeddings", "tie_embeddings"), default=tied)
    return Frame(hidden, n_layers, vocabulary, context, is_tied)


def _context(keys: Keys) -> int | None:
    """The first of the spellings: several are given with different meanings in one file, so they may differ."""
    for name in spellings.CONTEXT:
        if keys.has(name):
            return keys.maybe_whole("max_position", (name,), limits.POSITIONS)
    return keys.maybe_whole("max_position", spellings.CONTEXT, limits.POSITIONS)


Placement = Callable[[Keys, Frame], Sequence[bool]]
"""For each layer, whether it has experts."""


def every_layer(_: Keys, frame: Frame) -> Sequence[bool]:
    """Experts in all of them."""
    return [True] * frame.n_layers


def after_dense(keys: Keys, frame: Frame) -> Sequence[bool]:
    """`first_k_dense_replace` dense layers, then every `moe_layer_freq`-th (or as a list of 0 and 1 says).

    Raises:
        ConfigError: more dense layers than layers, or lists that do not fit.
    """
    types = keys.words("mlp_layer_types", "mlp_layer_types", ("dense", "sparse"), frame.n_layers)
    names = ("first_k_dense_replace", "moe_layer_num_skipped", "num_dense_layers")
    dense = keys.maybe_whole("dense_layers", names, limits.LAYERS, default=0, least=0) or 0
    if dense > frame.n_layers:
        key = next(name for name in names if keys.has(name))
        raise keys.refused(key, f"{dense:,} dense layers are more than {frame.n_layers:,} layers.")
    if types is not None:
        keys.passed_over("moe_layer_freq")
        return [kind == "sparse" for kind in types]
    if isinstance(keys.values.get("moe_layer_freq"), list):
        listed = keys.wholes("moe_layers", "moe_layer_freq", 1, frame.n_layers)
        return [bool(entry) for entry in listed or ()]
    every = keys.whole("moe_layer_period", ("moe_layer_freq",), limits.LAYERS, default=1)
    return [i >= dense and i % every == 0 for i in range(frame.n_layers)]


def by_sparse_step(keys: Keys, frame: Frame) -> Sequence[bool]:
    """Every `decoder_sparse_step`-th layer but those of `mlp_only_layers` (the Qwen classes)."""
    step = keys.whole("moe_layer_period", ("decoder_sparse_step",), limits.LAYERS, default=1)
    dense = set(keys.wholes("dense_layers", "mlp_only_layers", limits.LAYERS) or ())
    return [(i + 1) % step == 0 and i not in dense for i in range(frame.n_layers)]


def by_interleaving(keys: Keys, frame: Frame) -> Sequence[bool]:
    """`moe_layers`, or every `interleave_moe_layer_step`-th layer (Llama 4)."""
    step = keys.whole("moe_layer_period", ("interleave_moe_layer_step",), limits.LAYERS, default=1)
    listed = keys.wholes("moe_layers", "moe_layers", limits.LAYERS)
    if listed is not None:
        return [i in set(listed) for i in range(frame.n_layers)]
    return [(i + 1) % step == 0 for i in range(frame.n_layers)]


def from_start_index(keys: Keys, frame: Frame) -> Sequence[bool]:
    """From `moe_layer_start_index` to `moe_layer_end_index`, every `moe_layer_interval`-th (ERNIE 4.5)."""
    every = keys.whole("moe_layer_period", ("moe_layer_interval",), limits.LAYERS, default=1)
    first = keys.whole("dense_layers", ("moe_layer_start_index",), limits.LAYERS, default=1, least=0)
    last = frame.n_layers - 1
    if keys.values.get("moe_layer_end_index") == -1:  # the class's way to say: up to the last
        keys.passed_over("moe_layer_end_index")
    else:
        last = keys.whole("last_moe_layer", ("moe_layer_end_index",), limits.LAYERS, default=last, least=0)
    if first >= frame.n_layers:
        raise keys.refused("moe_layer_start_index", f"is no layer of {frame.n_layers:,}.")
    return [first <= i <= last and (i + 1) % every == 0 for i in range(frame.n_layers)]


def by_period(keys: Keys, frame: Frame) -> Sequence[bool]:
    """Every `expert_layer_period`-th layer, counted from `expert_layer_offset` (Jamba)."""
    every = keys.whole("moe_layer_period", ("expert_layer_period",), limits.LAYERS, default=2)
    offset = keys.whole("moe_layer_offset", ("expert_layer_offset",), limits.LAYERS, default=1, least=0)
    return [i % every == offset for i in range(frame.n_layers)]


def by_enumeration(keys: Keys, frame: Frame) -> Sequence[bool]:
    """The layers that `moe_layers_enum` lists, numbers with commas between (Step 3)."""
    listed = keys.word("moe_layers", ("moe_layers_enum",))
    if listed is None:
        if keys.any_of(("first_k_dense_replace", "mlp_layer_types")):
            return after_dense(keys, frame)
        raise keys.refused("moe_layers_enum", "is missing.")
    try:
        numbers = {int(part) for part in listed.split(",")}
    except ValueError:
        raise keys.refused("moe_layers_enum", "must be numbers of layers with commas between.") from None
    if not all(0 <= number < frame.n_layers for number in numbers):
        raise keys.refused("moe_layers_enum", f"names a layer that {frame.n_layers:,} layers do not have.")
    return [i in numbers for i in range(frame.n_layers)]
