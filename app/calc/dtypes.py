"""Number formats: how many bits an element takes, and what a quantized weight costs with its scales."""

from dataclasses import dataclass, field
from enum import StrEnum

BITS_PER_BYTE = 8


class Dtype(StrEnum):
    """An element type of arithmetic and of caches; knows its bits."""

    FP32 = "fp32"
    TF32 = "tf32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    INT8 = "int8"
    FP4 = "fp4"
    INT4 = "int4"

    @property
    def bits(self) -> int:
        """Stored width of one element; TF32 is a rate of arithmetic on values stored in 32 bits."""
        return _BITS[self]

    @property
    def bytes(self) -> float:
        """Stored bytes of one element (half a byte for the 4-bit types)."""
        return self.bits / BITS_PER_BYTE


_BITS = {
    Dtype.FP32: 32,
    Dtype.TF32: 32,
    Dtype.BF16: 16,
    Dtype.FP16: 16,
    Dtype.FP8: 8,
    Dtype.INT8: 8,
    Dtype.FP4: 4,
    Dtype.INT4: 4,
}


class WeightFormat(StrEnum):
    """How the large matrices of a checkpoint are stored."""

    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    INT8 = "int8"
    INT4 = "int4"
    MXFP4 = "mxfp4"
    NVFP4 = "nvfp4"

    @property
    def layout(self) -> "WeightLayout":
        """Element type and the scales stored beside the elements."""
        return _LAYOUTS[self]

    @property
    def bytes_per_weight(self) -> float:
        """Bytes of one weight, its share of the scales included."""
        return self.layout.bytes_per_weight


@dataclass(frozen=True, slots=True)
class WeightLayout:
    """Elements of one type, with `scale_bits` of scale and zero point for each block of `block_elements`."""

    element: Dtype
    block_elements: int = 1
    scale_bits: int = 0
    description: str = field(default="plain", compare=False)

    @property
    def bits_per_weight(self) -> float:
        """Element bits plus the block's scale spread over its elements.

        Worked number: MXFP4 is 4 + 8 ÷ 32 = 4.25 bits, 17/32 of a byte.
        """
        return self.element.bits + self.scale_bits / self.block_elements

    @property
    def bytes_per_weight(self) -> float:
        """The same in bytes."""
        return self.bits_per_weight / BITS_PER_BYTE


_LAYOUTS = {
    WeightFormat.FP32: WeightLayout(Dtype.FP32),
    WeightFormat.BF16: WeightLayout(Dtype.BF16),
    WeightFormat.FP16: WeightLayout(Dtype.FP16),
    WeightFormat.FP8: WeightLayout(Dtype.FP8, 128 * 128, 32, "E4M3, one FP32 scale a 128 × 128 block (DeepSeek-V3)"),
    WeightFormat.INT8: WeightLayout(Dtype.INT8, 128, 16, "GPTQ, one 16-bit scale a group of 128"),
    WeightFormat.INT4: WeightLayout(Dtype.INT4, 128, 20, "AWQ or GPTQ, a 16-bit scale and a 4-bit zero a group of 128"),
    WeightFormat.MXFP4: WeightLayout(Dtype.FP4, 32, 8, "OCP microscaling, one E8M0 scale a block of 32"),
    WeightFormat.NVFP4: WeightLayout(Dtype.FP4, 16, 8, "NVFP4, one E4M3 scale a block of 16"),
}
