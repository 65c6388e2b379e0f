"""Units in which people and vendors state figures, in the SI units of the calculators."""

GB = 1e9
"""Bytes of a gigabyte; also bytes a second of a GB/s."""
MIB = 2**20
"""Bytes of a mebibyte, in which drivers report memory."""
TERA = 1e12
"""Operations a second of a TFLOP/s or TOP/s."""
GIB = 2**30
"""Bytes of a gibibyte."""
