"""Parameters of a vision tower and its projector: counted for shapes that are certain, else left out with a notice.

Each count is a published total less that of the language model: 423,060,336 for Gemma 3 27B, 460,730,096 for Qwen3.5
27B, 438,958,080 for Mistral Small 3.2, 871,932,416 for Llama 4, 572,792,112 for Gemma 4 26B.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from app.checkpoint import limits
from app.checkpoint.keys import Keys, Origin
from app.checkpoint.nesting import Located

BLOCKS = ("vision_config", "vision_tower", "visual", "vision_encoder", "vit_config", "img_processor", "audio_config")
DEEP = ("deepstack_visual_indexes",)
"""Layers whose output is merged too; as a default, how many."""


class _UnknownSizeError(Exception):
    """A size that neither the file nor the class of the tower gives."""


@dataclass(frozen=True, slots=True)
class _Tower:
    """Keys of a tower and of the file around it, and the width of the model that it speaks to."""

    keys: Keys
    whole: Keys
    text_width: int

    def size(self, *names: str) -> int:
        value = self.keys.maybe_whole(f"vision.{names[0]}", names, limits.WIDTH)
        if value is None:
            raise _UnknownSizeError
        return value

    def features(self) -> int:
        """How wide is what the projector takes: hidden states of one layer, or of several side by side."""
        chosen = self.whole.values.get("vision_feature_layer")
        self.whole.passed_over("vision_feature_layer")
        return self.size("hidden_size") * (len(chosen) if isinstance(chosen, list) and chosen else 1)

    def projector_bias(self, *, default: bool) -> bool:
        name = "multimodal_projector_bias"
        return self.whole.flag("vision.projector_bias", (name,), default=default)


def read_vision(located: Located, text_width: int) -> int:
    """Parameters loaded beside the text model; 0 with a notice where they cannot be derived.

    Raises:
        ConfigError: a size of the tower is impossible.
    """
    whole = located.whole
    present = [key for key in BLOCKS if whole.has(key)]
    whole.passed_over(*BLOCKS)
    params = _count(whole, text_width) if whole.has("vision_config") else None
    if params is not None:
        present.remove("vision_config")
        whole.ledger.derive("vision_params", params, "sizes of the vision tower and its projector")
    if present:
        whole.ledger.notice(f"What {' and '.join(present)} describe is not counted: only the language model is.")
    return params or 0


def _count(whole: Keys, text_width: int) -> int | None:
    """Parameters of tower and projector; None where the tower, or the tower in this model, is none of those known."""
    inside = whole.inside("vision_config")
    outer = whole.values.get("model_type")
    host = HOSTS.get(outer) if isinstance(outer, str) else None
    if inside is None or host is None:
        return None
    kind = inside.values.get("model_type") or next(iter(host.towers))
    known = host.towers.get(kind) if isinstance(kind, str) else None
    if known is None:
        return None
    count, defaults = known
    tower = _Tower(replace(inside, class_defaults=defaults), whole, text_width)
    try:
        params = count(tower) + host.projector(tower)
    except _UnknownSizeError:
        return None
    inside.passed_over(*inside.values)
    widths = ("vision.hidden_size", "vision.embed_dim")
    if any(name in whole.ledger.fields and whole.ledger.fields[name].origin is Origin.DEFAULT for name in widths):
        whole.ledger.notice("The file leaves sizes of the vision tower out: they are its class's own.")
    return params


def _layer(width: int, inner: int, *, matrices: int = 2, bias: bool = True, norms: int = 2) -> int:
    """A layer of attention over the whole picture and a block of two or three matrices."""
    weights = 4 * width * width + matrices * width * inner
    biases = 4 * width + (matrices - 1) * inner + width if bias else 0
    return weights + biases + norms * width


def _entry(tower: _Tower, positions: int) -> int:
    """Patches of the picture as vectors, biased, and a table of positions."""
    width, patch = tower.size("hidden_size"), tower.size("patch_size")
    return width * tower.size("num_channels") * patch**2 + width + positions * width


def _siglip(tower: _Tower) -> int:
    """SigLIP: learned positions, and unless switched off a head that attends with one learned query."""
    width, inner = tower.size("hidden_size"), tower.size("intermediate_size")
    patches = (tower.size("image_size") // tower.size("patch_size")) ** 2
    params = _entry(tower, patches) + tower.size("num_hidden_layers") * _layer(width, inner, norms=4) + 2 * width
    if tower.keys.flag("vision.pooling_head", ("vision_use_head",), default=True):
        params += _layer(width, inner, norms=2) + width
    return params


def _clip(tower: _Tower) -> int:
    """CLIP: learned positions and a class token, and norms before and after."""
    width = tower.size("hidden_size")
    positions = (tower.size("image_size") // tower.size("patch_size")) ** 2 + 1
    layers = tower.size("num_hidden_layers") * _layer(width, tower.size("intermediate_size"), norms=4)
    return _entry(tower, positions) + layers + 4 * width


def _pixtral(tower: _Tower) -> int:
    """Pixtral: no biases, no table of positions, one norm before the layers."""
    width, inner = tower.size("hidden_size"), tower.size("intermediate_size")
    layers = tower.size("num_hidden_layers") * _layer(width, inner, matrices=3, bias=False)
    return width * tower.size("num_channels") * tower.size("patch_size") ** 2 + width + layers


def _nothing(_: _Tower) -> int:
    """What joins the tower to the model is counted with the tower."""
    return 0


def _one_matrix(tower: _Tower) -> int:
    """Gemma 3: one matrix and a norm."""
    width = tower.size("hidden_size")
    return width * tower.text_width + width


def _two_matrices(tower: _Tower) -> int:
    """LLaVA: two matrices, biased unless the file says otherwise."""
    text = tower.text_width
    bias = 2 * text if tower.projector_bias(default=True) else 0
    return tower.features() * text + text * text + bias


def _merged(tower: _Tower) -> int:
    """Mistral 3: a norm, a matrix that merges neighbouring patches, and two matrices."""
    width, text = tower.features(), tower.text_width
    side = tower.whole.whole("vision.merge_size", ("spatial_merge_size",), limits.HEADS, default=2)
    bias = 2 * text if tower.projector_bias(default=False) else 0
    own = tower.size("hidden_size")
    return own + side**2 * own * own + width * text + text * text + bias


def _qwen3(tower: _Tower) -> int:
    """Qwen3-VL and 3.5: learned positions, a merger to the model, and more mergers for single layers."""
    width = tower.size("hidden_size")
    out, patch = tower.size("out_hidden_size"), tower.size("patch_size")
    merged = width * tower.size("spatial_merge_size") ** 2
    layers = tower.size("depth") * _layer(width, tower.size("intermediate_size"), norms=4)
    entry = width * tower.size("in_channels", "in_chans") * tower.size("temporal_patch_size") * patch**2 + width
    merger = merged * merged + merged + merged * out + out
    deep = tower.keys.wholes("vision.deepstack", DEEP[0], limits.COUNT)
    count = (tower.keys.class_default(DEEP) or 0) if deep is None else len(deep)
    mergers = merger + 2 * width + count * (merger + 2 * merged)
    return entry + tower.size("num_position_embeddings") * width + layers + mergers


def _qwen2(tower: _Tower) -> int:
    """Qwen2-VL: blocks of two matrices, and a merger to the model."""
    width, out, patch = tower.size("embed_dim"), tower.size("hidden_size"), tower.size("patch_size")
    merged = width * tower.size("spatial_merge_size") ** 2
    layers = tower.size("depth") * _layer(width, width * tower.size("mlp_ratio"), norms=4)
    entry = width * tower.size("in_chans", "in_channels") * tower.size("temporal_patch_size") * patch**2
    return entry + layers + 2 * width + merged * merged + merged + merged * out + out


def _qwen25(tower: _Tower) -> int:
    """Qwen2.5-VL: gated blocks with biases and norms without, and a merger to the model."""
    width, out, patch = tower.size("hidden_size"), tower.size("out_hidden_size"), tower.size("patch_size")
    merged = width * tower.size("spatial_merge_size") ** 2
    layers = tower.size("depth") * _layer(width, tower.size("intermediate_size"), matrices=3)
    entry = width * tower.size("in_chans", "in_channels") * tower.size("temporal_patch_size") * patch**2
    return entry + layers + width + merged * merged + merged + merged * out + out


def _llama4(tower: _Tower) -> int:
    """Llama 4: positions with a class token, an adapter after pixels are shuffled, and one matrix to the model."""
    width, inner, patch = tower.size("hidden_size"), tower.size("intermediate_size"), tower.size("patch_size")
    positions = (tower.size("image_size") // patch) ** 2 + 1
    adapter, out = tower.size("projector_input_dim"), tower.size("projector_output_dim")
    entry = width * tower.size("num_channels") * patch**2 + width + positions * width
    layers = tower.size("num_hidden_layers") * _layer(width, inner, norms=4)
    return entry + layers + 4 * width + inner * adapter + adapter * out + out * tower.text_width


def _gemma4(tower: _Tower) -> int:
    """Gemma 4: two tables of positions, norms of queries and keys, and one matrix to the model."""
    width, patch = tower.size("hidden_size"), tower.size("patch_size")
    layer = _layer(width, tower.size("intermediate_size"), matrices=3, bias=False, norms=4)
    entry = 2 * tower.size("position_embedding_size") * width + width * 3 * patch**2
    norms = 2 * tower.size("head_dim")
    return entry + tower.size("num_hidden_layers") * (layer + norms) + width * tower.text_width


Count = Callable[[_Tower], int]
Known = tuple[Count, Mapping[str, Any]]
"""How a tower is counted, and what its class takes for sizes that are left out."""


@dataclass(frozen=True, slots=True)
class _Host:
    """A model around a tower: what joins the two, and the towers known in it, the class's own first."""

    projector: Count
    towers: Mapping[str, Known]


_BASE = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_channels": 3, "image_size": 224}
_SIGLIP: Known = (_siglip, _BASE | {"patch_size": 16})
_CLIP: Known = (_clip, _BASE | {"patch_size": 32})
_PIXTRAL: Known = (
    _pixtral,
    {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_channels": 3, "patch_size": 16},
)
_QWEN = {
    "in_channels": 3,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "patch_size": 14,
    "depth": 32,
    "hidden_size": 3584,
}
_QWEN2: Known = (_qwen2, _QWEN | {"mlp_ratio": 4, "embed_dim": 1280})
_QWEN25: Known = (_qwen25, _QWEN | {"intermediate_size": 3420, "out_hidden_size": 3584})
_QWEN3_SIZES = _QWEN | {
    "patch_size": 16,
    "depth": 27,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_position_embeddings": 2304,
    "out_hidden_size": 3584,
}
_QWEN3: Known = (_qwen3, _QWEN3_SIZES | {DEEP[0]: 3})
_QWEN35: Known = (_qwen3, _QWEN3_SIZES)
_LLAMA4: Known = (
    _llama4,
    {
        "hidden_size": 768,
        "intermediate_size": 5632,
        "num_hidden_layers": 34,
        "num_channels": 3,
        "image_size": 448,
        "patch_size": 14,
        "projector_input_dim": 4096,
        "projector_output_dim": 4096,
    },
)
_GEMMA4: Known = (
    _gemma4,
    {
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_hidden_layers": 16,
        "head_dim": 64,
        "patch_size": 16,
        "position_embedding_size": 10240,
    },
)


def _own(known: Known, *names: str) -> _Host:
    """A model with a tower of its own, under any of the names that published files give it."""
    return _Host(_nothing, dict.fromkeys(names, known))


HOSTS: Mapping[str, _Host] = MappingProxyType(
    {
        "gemma3": _Host(_one_matrix, {"siglip_vision_model": _SIGLIP}),
        "llava": _Host(
            _two_matrices, {"clip_vision_model": _CLIP, "siglip_vision_model": _SIGLIP, "pixtral": _PIXTRAL}
        ),
        "mistral3": _Host(_merged, {"pixtral": _PIXTRAL}),
        "qwen2_vl": _own(_QWEN2, "qwen2_vl", "qwen2_vl_vision"),
        "qwen2_5_vl": _own(_QWEN25, "qwen2_5_vl", "qwen2_5_vl_vision"),
        "qwen3_vl": _own(_QWEN3, "qwen3_vl", "qwen3_vl_vision"),
        "qwen3_vl_moe": _own(_QWEN3, "qwen3_vl_moe", "qwen3_vl_moe_vision"),
        "qwen3_5": _own(_QWEN35, "qwen3_5", "qwen3_5_vision"),
        "qwen3_5_moe": _own(_QWEN35, "qwen3_5_moe", "qwen3_5_moe_vision"),
        "llama4": _own(_LLAMA4, "llama4_vision_model"),
        "gemma4": _own(_GEMMA4, "gemma4_vision"),
    }
)
"""By the model type of the file; which tower it is, its own model type says."""
