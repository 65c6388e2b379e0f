"""Nemotron-H and 3: a string or list with one letter or word a layer, each layer a mixer or a block alone."""

from collections.abc import Sequence

from app.calc.architecture import LayerGroup, MultiTokenPrediction
from app.calc.dtypes import Dtype
from app.calc.layers.dense import DenseFeedForward
from app.calc.layers.experts import Experts
from app.catalog.importing import limits, spellings
from app.catalog.importing.family import Family
from app.catalog.importing.feed_forward import read_dense, read_experts
from app.catalog.importing.frame import Frame, read_frame
from app.catalog.importing.hybrid_families import plain_attention
from app.catalog.importing.keys import Keys
from app.catalog.importing.mtp import joint_params
from app.catalog.importing.recipe import Body, stacked
from app.catalog.importing.recurrent import read_mamba2

LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
WORDS = {"linear_attention": "mamba", "full_attention": "attention"} | {kind: kind for kind in LETTERS.values()}
MAMBA_KEYS = ("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel", "expand")


def read_kinds(keys: Keys, letters_key: str, words_key: str) -> tuple[str, ...] | None:
    """What each layer is.

    Raises:
        ConfigError: a letter or word that stands for no kind known.
    """
    words = keys.words(words_key, words_key, tuple(WORDS))
    letters = keys.word(letters_key, (letters_key,))
    if words is not None:
        return tuple(WORDS[word] for word in words)
    if letters is None:
        return None
    if len(letters) > limits.LAYERS or set(letters) - set(LETTERS):
        raise keys.refused(letters_key, f"may have the letters {' '.join(LETTERS)} only, one a layer.")
    return tuple(LETTERS[letter] for letter in letters)


def read(keys: Keys) -> Body:
    """The whole model; each layer has one norm.

    Raises:
        ConfigError: with the key that is missing, impossible or contradictory.
    """
    kinds = read_kinds(keys, "hybrid_override_pattern", "layers_block_type")
    if not kinds:
        raise keys.refused("hybrid_override_pattern", "is missing, and so is layers_block_type.")
    depth = keys.maybe_whole("n_layers", spellings.LAYERS, limits.LAYERS)
    if depth is None:
        keys.ledger.derive("n_layers", len(kinds), "one entry of the list a layer")
    elif depth != len(kinds):
        key = "layers_block_type" if keys.has("layers_block_type") else "hybrid_override_pattern"
        raise keys.refused(key, f"has {len(kinds):,} entries for {depth:,} layers.")
    if len(kinds) > limits.LAYERS:
        raise keys.refused("layers_block_type", f"has more than {limits.LAYERS:,} entries.")
    frame = read_frame(keys, tied=False, n_layers=len(kinds))
    predicted = read_kinds(keys, "mtp_hybrid_override_pattern", "mtp_layers_block_type") or ()
    groups = {kind: _layer(keys, frame, kind) for kind in dict.fromkeys((*kinds, *predicted))}
    keys.passed_over(*MAMBA_KEYS, "intermediate_size", "chunk_size", "sliding_window", "time_step_rank")
    layers, order = stacked([groups[kind] for kind in kinds])
    return Body(frame, layers, order, mtp=_mtp(keys, frame, [groups[kind] for kind in predicted]))


def _layer(keys: Keys, frame: Frame, kind: str) -> LayerGroup:
    if kind == "mamba":
        return LayerGroup(1, read_mamba2(keys, frame.hidden_size, Dtype.BF16), norms=1)
    if kind == "attention":
        return LayerGroup(1, plain_attention(keys, frame), norms=1)
    block = _experts(keys) if kind == "moe" else _dense(keys, frame)
    return LayerGroup(1, None, (block,), norms=1)


def _dense(keys: Keys, frame: Frame) -> DenseFeedForward:
    bias = keys.flag("mlp_bias", ("mlp_bias",), default=False)
    return DenseFeedForward(read_dense(keys, frame, gated=False).intermediate_size, gated=False, bias=bias)


def _experts(keys: Keys) -> Experts:
    """Experts of two matrices; those of the larger models work in a latent space."""
    if keys.flag("mlp_bias", ("mlp_bias",), default=False):
        raise keys.refused("mlp_bias", "biases of these experts are not computed.")
    count = keys.whole("shared_experts", ("n_shared_experts",), limits.EXPERTS, default=1, least=0)
    names = ("moe_shared_expert_intermediate_size",)
    width = keys.maybe_whole("shared_size", names, limits.WIDTH, least=0) or 0
    latent = keys.maybe_whole("expert_hidden_size", ("moe_latent_size",), limits.HIDDEN)
    keys.passed_over("moe_shared_expert_overlap")
    return read_experts(keys, shared=lambda *_: count * width or None, gated=False, latent=latent)


def _mtp(keys: Keys, frame: Frame, predicted: Sequence[LayerGroup]) -> MultiTokenPrediction | None:
    count = keys.maybe_whole("mtp_layers", spellings.MTP_LAYERS, limits.LAYERS, least=0)
    if not count or not predicted:
        if predicted and count is None:
            keys.ledger.notice("A pattern of multi-token-prediction layers is given, but no number of them: none read.")
        return None
    layers, _ = stacked([*predicted] * count)
    return MultiTokenPrediction(layers, count * joint_params(frame.hidden_size))


FAMILIES: Sequence[Family] = (Family("Nemotron-H and 3", ("nemotron_h",), read),)
