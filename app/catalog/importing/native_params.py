"""Mistral's own params.json, with its keys turned into the usual ones; each field still says the key of the file."""

from collections.abc import Mapping
from typing import Any

from app.catalog.importing import limits
from app.catalog.importing.keys import Keys
from app.catalog.importing.reach import FULL_LAYER, WINDOW_LAYER

NAMES = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "hidden_dim": "intermediate_size",
    "tied_embeddings": "tie_word_embeddings",
    "max_seq_len": "max_position_embeddings",
    "_sliding_window": "sliding_window",
}
MOE_NAMES = {
    "num_experts": "n_routed_experts",
    "expert_hidden_dim": "moe_intermediate_size",
    "num_shared_experts": "n_shared_experts",
    "route_every_n": "moe_layer_freq",
}


def is_native(config: Mapping[str, Any]) -> bool:
    """Whether these are the keys of a params.json."""
    return "model_type" not in config and all(key in config for key in ("dim", "n_layers", "n_heads", "hidden_dim"))


def from_native(whole: Keys) -> tuple[Keys, str]:
    """The same model under the usual keys, and the model type that it amounts to.

    Raises:
        ConfigError: a structure that these files are not known to describe.
    """
    values: dict[str, Any] = {}
    paths: dict[str, str] = {}
    for key, value in whole.values.items():
        usual = NAMES.get(key, key)
        if usual not in values or values[usual] is None:
            values[usual], paths[usual] = value, key
    moe = whole.inside("moe")
    if moe is not None:
        for key, value in moe.values.items():
            usual = MOE_NAMES.get(key, key)
            values[usual], paths[usual] = value, moe.path(key)
        if "moe_intermediate_size" not in values:
            values["moe_intermediate_size"] = values.get("intermediate_size")
    whole.passed_over(*whole.values)
    if moe is not None:
        moe.passed_over(*moe.values)
    _spread_windows(whole, values)
    keys = Keys(values, "", whole.ledger, elsewhere=paths)
    if values.get("kv_lora_rank") is not None:
        return keys, "mistral4" if moe is not None else "mistral_latent"
    if moe is None:
        return keys, "mistral"
    values["num_local_experts"] = values.pop("n_routed_experts", None)
    values["intermediate_size"] = values.pop("moe_intermediate_size")
    for usual, key in (("num_local_experts", "num_experts"), ("intermediate_size", "expert_hidden_dim")):
        if key in moe.values:
            paths[usual] = moe.path(key)
    return keys, "mixtral"


def _spread_windows(whole: Keys, values: dict[str, Any]) -> None:
    """A list of windows stands for one round of layers, null for a layer that sees everything."""
    listed = values.get("sliding_window")
    if not isinstance(listed, list):
        return
    depth = values.get("num_hidden_layers")
    if not isinstance(depth, int) or isinstance(depth, bool) or not 1 <= depth <= limits.LAYERS:
        raise whole.refused("n_layers", f"must be a whole number from 1 to {limits.LAYERS:,}.")
    if not listed or len(listed) > limits.LAYERS:
        raise whole.refused("sliding_window", "is a list that does not fit the layers.")
    windows = {entry for entry in listed if isinstance(entry, int) and not isinstance(entry, bool)}
    if len(windows) != 1 or any(entry is not None and entry not in windows for entry in map(_hashable, listed)):
        raise whole.refused("sliding_window", "must list one width, and null for full layers.")
    (values["sliding_window"],) = windows
    values["layer_types"] = [WINDOW_LAYER if listed[i % len(listed)] else FULL_LAYER for i in range(depth)]


def _hashable(entry: Any) -> Any:
    return entry if isinstance(entry, (int, type(None))) and not isinstance(entry, bool) else ""
