"""The names that engines have for number formats, in the scenario's words."""

from collections.abc import Iterable, Mapping

from app.calc.dtypes import Dtype, WeightFormat
from app.catalog.checkpoints import Scheme
from app.catalog.models import ModelRecord

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
