"""Which layers have experts and which one dense block: the many ways in which configurations say so."""

from collections.abc import Callable, Sequence

from app.catalog.importing import limits
from app.catalog.importing.frame import Frame
from app.catalog.importing.keys import Keys

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
