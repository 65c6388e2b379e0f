"""Parameters of a vision tower and its projector: counted for shapes that are certain, else left out with a notice.

Each count is a published total less that of the language model: 423,060,336 for Gemma 3 27B, 460,730,096 for Qwen3.5
27B, 438,958,080 for Mistral Small 3.2, 871,932,416 for Llama 4, 572,792,112 for Gemma 4 26B.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from app.catalog.importing import limits
from app.catalog.importing.keys import Keys
from app.catalog.importing.nesting import Located

BLOCKS = ("vision_config", "vision_tower", "visual", "vision_encoder", "vit_config", "img_processor", "audio_config")


@dataclass(frozen=True, slots=True)
class _Tower:
    """Keys of a tower, and the width of the model that it speaks to."""

    keys: Keys
    text_width: int

    def size(self, *names: str) -> int:
        """A size of the tower."""
        return self.keys.whole(f"vision.{names[0]}", names, limits.WIDTH)


def read_vision(located: Located, text_width: int) -> int:
    """Parameters loaded beside the text model; 0 with a notice where they cannot be derived.

    Raises:
        ConfigError: a size of the tower is missing or impossible.
    """
    whole = located.whole
    present = [key for key in BLOCKS if whole.has(key)]
    whole.passed_over(*BLOCKS)
    outer = whole.values.get("model_type")
    known = TOWERS.get(outer) if isinstance(outer, str) else None
    params = 0
    if known is not None and whole.has("vision_config"):
        inside = whole.inside("vision_config")
        if inside is not None and inside.values:
            count, defaults = known
            params = count(_Tower(replace(inside, class_defaults=defaults), text_width))
            inside.passed_over(*inside.values)
            present.remove("vision_config")
            whole.ledger.derive("vision_params", params, "sizes of the vision tower and its projector")
    if present:
        whole.ledger.notice(f"What {' and '.join(present)} describe is not counted: only the language model is.")
    return params


def _layer(width: int, inner: int, *, matrices: int = 2, bias: bool = True, norms: int = 2) -> int:
    """A layer of attention over the whole picture and a block of two or three matrices."""
    weights = 4 * width * width + matrices * width * inner
    biases = 4 * width + (matrices - 1) * inner + width if bias else 0
    return weights + biases + norms * width


def _siglip(tower: _Tower) -> int:
    """Gemma 3: SigLIP with learned positions, and one matrix and a norm to the model."""
    width, patch = tower.size("hidden_size"), tower.size("patch_size")
    patches = (tower.size("image_size") // patch) ** 2
    layers = tower.size("num_hidden_layers") * _layer(width, tower.size("intermediate_size"), norms=4)
    entry = width * tower.size("num_channels") * patch**2 + width + patches * width
    return entry + layers + 2 * width + width * tower.text_width + width


def _clip(tower: _Tower) -> int:
    """LLaVA 1.5: CLIP with a class token, and two biased matrices to the model."""
    width, patch, text = tower.size("hidden_size"), tower.size("patch_size"), tower.text_width
    positions = (tower.size("image_size") // patch) ** 2 + 1
    layers = tower.size("num_hidden_layers") * _layer(width, tower.size("intermediate_size"), norms=4)
    entry = width * tower.size("num_channels") * patch**2 + width + positions * width
    return entry + layers + 4 * width + width * text + text + text * text + text


def _pixtral(tower: _Tower) -> int:
    """Mistral 3: Pixtral without biases; four patches are merged before two matrices to the model."""
    width, patch, text = tower.size("hidden_size"), tower.size("patch_size"), tower.text_width
    inner = tower.size("intermediate_size")
    layers = tower.size("num_hidden_layers") * _layer(width, inner, matrices=3, bias=False)
    entry = width * tower.size("num_channels") * patch**2 + width
    return entry + layers + width + 4 * width * width + width * text + text * text


def _qwen3(tower: _Tower) -> int:
    """Qwen3-VL and 3.5: learned positions, a merger to the model, and more mergers for single layers."""
    width = tower.size("hidden_size")
    out, patch = tower.size("out_hidden_size"), tower.size("patch_size")
    merged = width * tower.size("spatial_merge_size") ** 2
    layers = tower.size("depth") * _layer(width, tower.size("intermediate_size"), norms=4)
    entry = width * tower.size("in_channels", "in_chans") * tower.size("temporal_patch_size") * patch**2 + width
    merger = merged * merged + merged + merged * out + out
    deep = tower.keys.wholes("vision.deepstack", "deepstack_visual_indexes", limits.COUNT) or ()
    mergers = merger + 2 * width + len(deep) * (merger + 2 * merged)
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
_SIGLIP = {"num_channels": 3}
_CLIP = {"num_channels": 3, "image_size": 224, "intermediate_size": 3072}
_PIXTRAL = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_channels": 3,
    "patch_size": 16,
}
_QWEN = {
    "in_channels": 3,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "patch_size": 14,
    "mlp_ratio": 4,
    "depth": 32,
}
_QWEN3 = _QWEN | {
    "patch_size": 16,
    "depth": 27,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_position_embeddings": 2304,
}
_LLAMA4 = {"num_channels": 3, "image_size": 448, "patch_size": 14}
TOWERS: Mapping[str, tuple[Count, Mapping[str, int]]] = MappingProxyType(
    {
        "gemma3": (_siglip, _SIGLIP),
        "llava": (_clip, _CLIP),
        "mistral3": (_pixtral, _PIXTRAL),
        "qwen2_vl": (_qwen2, _QWEN),
        "qwen2_5_vl": (_qwen25, _QWEN | {"hidden_size": 1280, "intermediate_size": 3420}),
        "qwen3_vl": (_qwen3, _QWEN3),
        "qwen3_vl_moe": (_qwen3, _QWEN3),
        "qwen3_5": (_qwen3, _QWEN3),
        "qwen3_5_moe": (_qwen3, _QWEN3),
        "llama4": (_llama4, _LLAMA4),
        "gemma4": (_gemma4, {}),
    }
)
