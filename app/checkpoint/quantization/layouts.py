"""Layouts of the element types and scales that quantization settings name."""

from app.calc.dtypes import Dtype, WeightFormat, WeightLayout

SCALE_BITS = 16
BLOCK_FP8 = WeightFormat.FP8.layout
MXFP4 = WeightFormat.MXFP4.layout
NVFP4 = WeightFormat.NVFP4.layout
MXFP8 = WeightLayout(Dtype.FP8, 32, 8, "OCP microscaling, one E8M0 scale a block of 32")
PER_TENSOR_FP8 = WeightLayout(Dtype.FP8, 1, 0, "E4M3, one scale a matrix")


def integer(bits: int) -> Dtype | None:
    """The integer type of as many bits; None where there is no calculation for it."""
    return {4: Dtype.INT4, 8: Dtype.INT8}.get(bits)


def grouped(element: Dtype, group: int, *, zero_bits: int = 0, scale_bits: int = SCALE_BITS) -> WeightLayout:
    """Elements with a scale, and a zero point of `zero_bits`, for each `group` of them."""
    return WeightLayout(element, group, scale_bits + zero_bits, f"a {scale_bits}-bit scale a group of {group:,}")


def per_row(element: Dtype, row: int, scale_bits: int = SCALE_BITS) -> WeightLayout:
    """Elements with one scale a row of a matrix; rows are taken to be as wide as the model."""
    return WeightLayout(element, row, scale_bits, "one scale a row of a matrix")


def blocks_fp8(rows: int, columns: int) -> WeightLayout:
    """E4M3 with one 32-bit scale for each block."""
    if (rows, columns) == (128, 128):
        return BLOCK_FP8
    return WeightLayout(Dtype.FP8, rows * columns, 32, f"E4M3, one FP32 scale a {rows} × {columns} block")


def normal_float(*, double: bool) -> WeightLayout:
    """NF4 of bitsandbytes: a 32-bit scale for 64 elements, or scales of 8 bits that share one of 32 for 256 of them."""
    if double:
        return WeightLayout(Dtype.INT4, 64 * 256, 256 * 8 + 32, "NF4, scales themselves quantized")
    return WeightLayout(Dtype.INT4, 64, 32, "NF4, one FP32 scale a block of 64")
