"""Where a file keeps the language model, in names of its own or in blocks with defaults of their class."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from app.checkpoint import limits, spellings
from app.checkpoint.attention import FULL_LAYER, WINDOW_LAYER
from app.checkpoint.keys import MOST_QUOTED, ConfigError, Keys, Ledger, quoted

CLASS_DEFAULTS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    tomllib.loads(Path(__file__).with_name("class_defaults.toml").read_text(encoding="utf-8"))
)


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


BLOCKS = ("text_config", "llm_config", "language_config", "thinker_config")
INNER_TYPES = {
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "llama4": "llama4_text",
    "qwen2_vl": "qwen2_vl_text",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_omni_moe": "qwen3_omni_moe_text",
    "glm4v": "glm4v_text",
    "glm4v_moe": "glm4v_moe_text",
    "mistral3": "mistral",
    "step3_vl": "step3_text",
    "minimax_m3_vl": "minimax_m3_text",
    "kimi_k25": "kimi_k2",
    "kimi_k3": "kimi_linear",
    "deepseek_vl_v2": "deepseek_v2",
    "llava": "llama",
}
"""What a nested block is where it does not say so itself."""
FLAT_TYPES = {
    "llava": "llama",
    "llava_llama": "llama",
    "llava_mistral": "mistral",
    "llava_qwen": "qwen2",
    "phi3_v": "phi3",
}
"""Language models with a tower beside them whose sizes stand in the file itself."""
BY_ARCHITECTURE = {("git", "Grok1ForCausalLM"): "grok-2", ("git", "Grok1ModelForCausalLM"): "grok-2"}
"""Model types that mean something else in the company of an architecture."""
SHARED = (
    spellings.HIDDEN,
    spellings.LAYERS,
    spellings.HEADS,
    spellings.KV_HEADS,
    spellings.WIDTH,
    spellings.HEAD_DIM,
    spellings.VOCABULARY,
    spellings.CONTEXT[:1],
    spellings.WINDOW[:1],
)
"""Sizes that the file around may repeat, but not contradict, and that it gives where the block has none.

It gives them under the usual name, the first: another name may speak of another part there.
"""
TIED = "tie_word_embeddings"


@dataclass(frozen=True, slots=True)
class Located:
    """The keys of the language model, its model type with the path of the key that says so, and the whole file."""

    text: Keys
    whole: Keys
    model_type: str
    type_key: str

    @property
    def is_nested(self) -> bool:
        return bool(self.text.prefix)


def locate(config: Mapping[str, Any], ledger: Ledger) -> Located:
    """The block of the language model: nested in one of the usual ways, or the file itself.

    Raises:
        ConfigError: no model type, or a block that is none or contradicts the file around it.
    """
    whole = Keys(config, "", ledger)
    if is_native(config):
        text, model_type = from_native(whole)
        return Located(text, whole, model_type, "dim")
    _refuse_two_stacks(whole)
    outer_type = _model_type(whole, required=not any(whole.has(block) for block in BLOCKS))
    text = _descend(whole)
    if text is whole:
        if outer_type in INNER_TYPES and not whole.any_of(spellings.LAYERS):
            raise ConfigError("text_config", "is missing.")
        if outer_type in FLAT_TYPES:
            whole.ledger.notice(
                "A vision tower belongs to this model, which is not counted: only its language model is."
            )
            return Located(whole, whole, FLAT_TYPES[outer_type], "model_type")
        return Located(whole, whole, _by_architecture(whole, outer_type), "model_type")
    inner_type = _model_type(text, required=False) or INNER_TYPES.get(outer_type, "")
    inner_type = INNER_TYPES.get(inner_type, inner_type)
    if not inner_type:
        raise text.refused("model_type", "is missing.")
    text = replace(text, class_defaults=CLASS_DEFAULTS.get(inner_type, {}))
    return Located(_with_outer(text, whole), whole, inner_type, text.path("model_type"))


def _model_type(keys: Keys, *, required: bool) -> str:
    value = keys.values.get("model_type")
    keys.passed_over("model_type")
    if value is None and not required:
        return ""
    if not isinstance(value, str) or not value.strip():
        raise keys.refused("model_type", "is needed, and must be a text: it says which family's keys these are.")
    return value if len(value) <= MOST_QUOTED else quoted(value)


def _by_architecture(whole: Keys, model_type: str) -> str:
    names = whole.values.get("architectures")
    first = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else ""
    return BY_ARCHITECTURE.get((model_type, first), model_type)


def _descend(whole: Keys) -> Keys:
    """The block of the language model, or the file itself.

    Raises:
        ConfigError: there are two, and they differ.
    """
    present = [name for name in BLOCKS if whole.has(name)]
    for name in present[1:]:
        if whole.values[name] != whole.values[present[0]]:
            raise whole.refused(name, f"says something else than {present[0]}: which is the model's is not guessed.")
        whole.passed_over(name)
    for name in present:
        block = whole.inside(name)
        if block is None:
            continue
        if name == "thinker_config":
            inside = block.inside("text_config")
            if inside is None:
                raise block.refused("text_config", "is missing.")
            return inside
        return block
    return whole


def _refuse_two_stacks(whole: Keys) -> None:
    """Encoder-decoders have two stacks of layers: what is computed here is one."""
    if whole.values.get("is_encoder_decoder") is True:
        raise whole.refused("is_encoder_decoder", "encoder-decoders are not computed, only decoders.")
    whole.passed_over("is_encoder_decoder")


def _with_outer(text: Keys, whole: Keys) -> Keys:
    """The block with what it takes over from the file around it.

    Raises:
        ConfigError: the two contradict each other.
    """
    taken = {}
    for names in SHARED:
        for key in names:
            if not whole.has(key):
                continue
            mine = _said_inside(text, names if key == names[0] else (key,))
            if mine is not None:
                _refuse_another(whole, key, text, mine)
                whole.passed_over(key)
            elif key == names[0]:
                taken[key] = whole.values[key]
    if taken:
        listed = ", ".join(taken)
        text.ledger.notice(f"Sizes that stand outside {text.prefix}, and not in it, are taken from there: {listed}.")
        text = replace(text, values={**text.values, **taken}, elsewhere={key: key for key in taken})
    return _with_outer_head(text, whole)


def _said_inside(text: Keys, names: Sequence[str]) -> str | None:
    """The first of the names that the block has, preferably with a value."""
    there = [name for name in names if name in text.values]
    return next((name for name in there if text.has(name)), there[0] if there else None)


def _refuse_another(whole: Keys, key: str, text: Keys, mine: str) -> None:
    inner, outer = text.values[mine], whole.values[key]
    if inner is None:
        raise whole.refused(key, f"contradicts {text.path(mine)}, which is null.")
    if inner != outer or isinstance(inner, bool) is not isinstance(outer, bool):
        raise whole.refused(key, f"contradicts {text.path(mine)}.")


def _with_outer_head(text: Keys, whole: Keys) -> Keys:
    """The block with what the file around says of the head."""
    whole.passed_over(TIED)
    outer, inner = whole.values.get(TIED), text.values.get(TIED)
    if outer is None or outer == inner:
        return text
    if isinstance(outer, bool) and isinstance(inner, bool):
        # Either says so: newer libraries write the outer key, older ones the inner, and the other is a default.
        text.ledger.notice(f"{TIED} is said twice and differently: the head is counted as tied.")
    if inner is None or outer is True:
        return replace(text, values={**text.values, TIED: outer}, elsewhere={**text.elsewhere, TIED: TIED})
    return text
