"""Names that engines print: those of models in the catalog, and those of number formats."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from app.calc.dtypes import Dtype, WeightFormat
from app.catalog.models import ModelRecord, Scheme

_WIDE = {
    "bfloat16": Dtype.BF16,
    "bf16": Dtype.BF16,
    "float16": Dtype.FP16,
    "half": Dtype.FP16,
    "fp16": Dtype.FP16,
    "f16": Dtype.FP16,
    "float32": Dtype.FP32,
    "float": Dtype.FP32,
    "fp32": Dtype.FP32,
    "f32": Dtype.FP32,
}
_CACHES = _WIDE | {
    "int8": Dtype.INT8,
    "q8_0": Dtype.INT8,
    "nvfp4": Dtype.FP4,
    "fp4": Dtype.FP4,
    "fp4_e2m1": Dtype.FP4,
    "float4_e2m1fn_x2": Dtype.FP4,
    "q4_0": Dtype.INT4,
    "q4_1": Dtype.INT4,
    "iq4_nl": Dtype.INT4,
    "int4": Dtype.INT4,
}
_SCHEMES: Mapping[str, WeightFormat] = {
    "fp8": WeightFormat.FP8,
    "fbgemm_fp8": WeightFormat.FP8,
    "ptpc_fp8": WeightFormat.FP8,
    "w8a8_fp8": WeightFormat.FP8,
    "modelopt": WeightFormat.FP8,
    "modelopt_fp8": WeightFormat.FP8,
    "modelopt_fp4": WeightFormat.NVFP4,
    "nvfp4": WeightFormat.NVFP4,
    "mxfp4": WeightFormat.MXFP4,
    "gpt_oss_mxfp4": WeightFormat.MXFP4,
    "awq": WeightFormat.INT4,
    "awq_marlin": WeightFormat.INT4,
    "w8a8_int8": WeightFormat.INT8,
}


def wide_type(name: str | None) -> Dtype | None:
    """A 16- or 32-bit type by the name that PyTorch or an engine has for it."""
    return _WIDE.get((name or "").removeprefix("torch."))


def cache_type(name: str | None) -> Dtype | None:
    """The element type of a cache; every flavour of 8-bit float is FP8."""
    plain = (name or "").casefold().removeprefix("torch.")
    return Dtype.FP8 if plain.startswith(("fp8", "float8")) else _CACHES.get(plain)


def scheme_format(name: str | None) -> WeightFormat | None:
    """The format that a quantization scheme always means; None for schemes that come in several widths."""
    return _SCHEMES.get((name or "").casefold())


def stated_weights(record: ModelRecord | None, said: WeightFormat | None) -> str | None:
    """What a scenario says for a format: "native" where the model's own first checkpoint stores it group by group."""
    if said is None:
        return None
    if record is not None and any(_is(scheme, said) for scheme in _schemes(record)):
        return "native"
    return said.value


def _schemes(record: ModelRecord) -> Iterable[Scheme]:
    return record.checkpoints[0].narrow.values()


def _is(scheme: Scheme, said: WeightFormat) -> bool:
    return scheme.format is said if scheme.format else scheme.element is said.layout.element


_LONGEST_NAME = 300
_SEPARATORS = re.compile(r"[\s_\-]+")
_NOTE = re.compile(r" *\([^()]{0,80}\)")

# Words of a name that say how its weights are stored. The longest run of them at its end is looked up.
_FORMAT_WORDS: Mapping[str, WeightFormat | None] = {
    "fp8": WeightFormat.FP8,
    "int8": WeightFormat.INT8,
    "w8a8": WeightFormat.INT8,
    "w8a16": WeightFormat.INT8,
    "8bit": WeightFormat.INT8,
    "q8": WeightFormat.INT8,
    "int4": WeightFormat.INT4,
    "w4a16": WeightFormat.INT4,
    "4bit": WeightFormat.INT4,
    "awq": WeightFormat.INT4,
    "q4": WeightFormat.INT4,
    "nvfp4": WeightFormat.NVFP4,
    "fp4": WeightFormat.NVFP4,
    "mxfp4": WeightFormat.MXFP4,
    "bf16": WeightFormat.BF16,
    "fp16": WeightFormat.FP16,
    "f16": WeightFormat.FP16,
    # They say that there is a format, and another word or the engine which.
    **dict.fromkeys(("gptq", "bnb", "gguf", "autoround", "marlin", "mlx", "quantized", "gptqmodel", "unsloth")),
    **dict.fromkeys(("dynamic", "static", "block", "per", "tensor", "pertensor", "sym", "g128", "g32", "moe")),
    **dict.fromkeys(("k", "m", "s", "l", "xl", "0", "1", "ud", "q2", "q3", "q5", "q6", "iq2", "iq3", "iq4")),
    **dict.fromkeys(("xs", "xxs", "nl", "nvidia")),
}
# Base and tuned checkpoints of one size have the same shape.
_TUNING_WORDS = frozenset({"instruct", "chat", "base", "it", "hf", "pt", "meta"})


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model of the catalog, and the format that the name's end states."""

    id: str
    weights: WeightFormat | None


def find_model(name: str | None, models: Mapping[str, ModelRecord]) -> NamedModel | None:
    """The one model that a hub id, a path or a file name means; None where it is none, or could be two."""
    if not name or len(name) > _LONGEST_NAME:
        return None
    last = re.split(r"[/\\]", name.strip().rstrip("/\\"))[-1].removesuffix(".gguf").removesuffix(".GGUF")
    # A folder of the hub's cache is called models--owner--name.
    words = _words(last.rsplit("--", 1)[-1])
    exact, loose = _index(models.values())
    for known, reading in ((exact, tuple(words)), (loose, _loose(words))):
        if id_ := known.get("-".join(reading)):
            return NamedModel(id_, None)
    plain, formats = _without_format(words)
    id_ = exact.get("-".join(plain)) or loose.get("-".join(_loose(plain)))
    return NamedModel(id_, next((f for f in formats if f is not None), None)) if id_ else None


def _words(name: str) -> list[str]:
    return [word for word in _SEPARATORS.split(name.casefold()) if word]


def _loose(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(word for word in words if word not in _TUNING_WORDS)


def _without_format(words: list[str]) -> tuple[list[str], list[WeightFormat | None]]:
    """The words before those of the format; "quantized.w4a16" and "q4_k_m" are several of them."""
    plain = [part for word in words for part in (word.split(".") if word.startswith("quantized.") else [word])]
    formats: list[WeightFormat | None] = []
    while plain and plain[-1] in _FORMAT_WORDS:
        formats.insert(0, _FORMAT_WORDS[plain.pop()])
    return plain, formats


def _index(records: Iterable[ModelRecord]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Ids by a model's names, exact and without words of tuning; a name of two models is in neither."""
    exact: dict[str, set[str]] = {}
    loose: dict[str, set[str]] = {}
    for record in records:
        checkpoints = [c.hub_id for c in record.checkpoints if c.hub_id]
        own = [record.hub_id, record.id, record.name, *(_NOTE.sub("", name) for name in record.same_shape)]
        for name in own + checkpoints:
            words = _words(name.rsplit("/", 1)[-1])
            exact.setdefault("-".join(_without_format(words)[0] if name in checkpoints else words), set()).add(
                record.id
            )
            loose.setdefault("-".join(_loose(_without_format(words)[0])), set()).add(record.id)
    return _certain(exact), _certain(loose)


def _certain(names: Mapping[str, set[str]]) -> Mapping[str, str]:
    return MappingProxyType({name: min(ids) for name, ids in names.items() if len(ids) == 1 and name})
