"""A Hugging Face config.json read as an architecture, for the dense families that the catalog has verified.

Each family below is one whose recomputed parameter total equals the published one for a model of the catalog. A
configuration of any other family, or one with a part that changes the structure, is refused by the name of that part.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.calc.architecture import Architecture, Attention, FeedForward, LayerGroup, QkNorm

_LIMITS = {
    "hidden_size": 1_000_000,
    "num_hidden_layers": 10_000,
    "num_attention_heads": 100_000,
    "num_key_value_heads": 100_000,
    "head_dim": 100_000,
    "intermediate_size": 10_000_000,
    "vocab_size": 100_000_000,
    "max_position_embeddings": 100_000_000,
    "sliding_window": 100_000_000,
}
# Keys that announce a structure the dense families do not have. Present and not null, false or zero: refused.
_STRUCTURAL = (
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "moe_num_experts",
    "kv_lora_rank",
    "q_lora_rank",
    "layers_block_type",
    "hybrid_override_pattern",
    "block_configs",
    "linear_attn_config",
    "linear_num_value_heads",
    "mamba_d_state",
    "ssm_state_size",
    "num_kv_shared_layers",
    "attention_chunk_size",
    "index_topk",
    "text_config",
)


@dataclass(frozen=True, slots=True)
class _Family:
    qk_norm: QkNorm = QkNorm.NONE
    qkv_bias: bool | None = None  # None: the key attention_bias decides
    output_bias: bool | None = None
    windows: bool = False  # the key sliding_window is honoured by the model class
    tied_by_default: bool = False


_FAMILIES = {
    "llama": _Family(),
    "mistral": _Family(qkv_bias=False, output_bias=False, windows=True),
    "qwen2": _Family(qkv_bias=True, output_bias=False),
    "qwen3": _Family(qk_norm=QkNorm.PER_HEAD),
    "phi3": _Family(qkv_bias=False, output_bias=False, windows=True),
    "granite": _Family(),
    "olmo2": _Family(qk_norm=QkNorm.FULL_WIDTH),
    "smollm3": _Family(tied_by_default=True),
    "seed_oss": _Family(qkv_bias=None, output_bias=False),
}
READABLE_TYPES = tuple(_FAMILIES)


class ConfigError(ValueError):
    """A configuration that is not read: `key` is what is missing, wrong or unknown."""

    def __init__(self, key: str, message: str) -> None:
        self.key, self.message = key, message
        super().__init__(f"{key}: {message}")


def read_config(config: Mapping[str, Any], name: str) -> Architecture:
    """The architecture that `config` describes.

    Args:
        config: keys and values of a config.json.
        name: how the model is called in messages.

    Raises:
        ConfigError: with the key that is missing, has an impossible value, or names a structure that is not computed.
    """
    family = _family(config)
    _refuse_other_structures(config)
    hidden, heads = _whole(config, "hidden_size"), _whole(config, "num_attention_heads")
    kv_heads = _whole(config, "num_key_value_heads", default=heads)
    if heads % kv_heads:
        raise ConfigError("num_key_value_heads", f"{kv_heads} KV heads do not divide {heads} heads.")
    if not config.get("head_dim") and hidden % heads:
        raise ConfigError("head_dim", f"is missing, and {hidden} does not divide among {heads} heads.")
    bias = _flag(config, "attention_bias") or _flag(config, "qkv_bias")
    attention = Attention(
        n_heads=heads,
        n_kv_heads=kv_heads,
        head_dim=_whole(config, "head_dim", default=hidden // heads),
        window=_optional(config, "sliding_window") if family.windows else None,
        qkv_bias=bias if family.qkv_bias is None else family.qkv_bias,
        output_bias=_flag(config, "attention_bias") if family.output_bias is None else family.output_bias,
        qk_norm=family.qk_norm,
    )
    feed_forward = FeedForward(_whole(config, "intermediate_size"), bias=_flag(config, "mlp_bias"))
    return Architecture(
        name=name,
        hidden_size=hidden,
        vocab_size=_whole(config, "vocab_size"),
        layers=(LayerGroup(_whole(config, "num_hidden_layers"), attention, feed_forward),),
        tied_embeddings=_flag(config, "tie_word_embeddings", default=family.tied_by_default),
        max_position=_optional(config, "max_position_embeddings"),
    )


def _family(config: Mapping[str, Any]) -> _Family:
    model_type = config.get("model_type")
    if not isinstance(model_type, str):
        raise ConfigError("model_type", f"is needed; one of {', '.join(READABLE_TYPES)}.")
    if model_type not in _FAMILIES:
        known = ", ".join(READABLE_TYPES)
        raise ConfigError("model_type", f"this family is not known here, and is not guessed; known are {known}.")
    return _FAMILIES[model_type]


def _refuse_other_structures(config: Mapping[str, Any]) -> None:
    for key in _STRUCTURAL:
        if config.get(key):
            raise ConfigError(key, "a structure that is not computed; only dense full attention is.")
    layer_types = config.get("layer_types")
    if layer_types is not None:
        if not isinstance(layer_types, list) or any(kind != "full_attention" for kind in layer_types):
            raise ConfigError("layer_types", "only full_attention is computed.")
        if len(layer_types) != _whole(config, "num_hidden_layers"):
            raise ConfigError("layer_types", "has not one entry a layer.")
    for key in ("attention_out_bias", "bias"):
        if _flag(config, key):
            raise ConfigError(key, "these biases are not computed.")
    if _flag(config, "use_sliding_window"):
        raise ConfigError("use_sliding_window", "a window in some layers only is not computed.")


def _optional(config: Mapping[str, Any], key: str) -> int | None:
    return _whole(config, key) if config.get(key) is not None else None


def _flag(config: Mapping[str, Any], key: str, *, default: bool = False) -> bool:
    value = config.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ConfigError(key, "must be true or false.")
    return value


def _whole(config: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = config.get(key)
    if value is None:
        if default is None:
            raise ConfigError(key, "is missing.")
        value = default
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LIMITS[key]:
        raise ConfigError(key, f"must be a whole number from 1 to {_LIMITS[key]:,}.")
    return value
