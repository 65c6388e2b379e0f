"""Not torch: as much of its face as the worker asks for, over a card that does not exist."""

from typing import Any

from simulated_card import CARD  # type: ignore[import-not-found]

from . import cuda, version

if CARD.behaviour == "broken":
    raise ImportError("libcudart.so is not there")

__all__ = ["cuda", "version"]
__version__ = "2.9.1+fake"


class dtype:  # noqa: N801 - torch's name
    def __init__(self, name: str, itemsize: int) -> None:
        self.name, self.itemsize = name, itemsize


float32, bfloat16, float16 = dtype("fp32", 4), dtype("bf16", 2), dtype("fp16", 2)
int8, float8_e4m3fn, float8_e4m3fnuz = dtype("int8", 1), dtype("fp8", 1), dtype("fp8 fnuz", 1)
_PRECISION = {"now": "highest"}


class Tensor:
    def __init__(self, shape: tuple[int, ...], kind: dtype) -> None:
        self.shape, self.dtype, self.nbytes = shape, kind, kind.itemsize
        for side in shape:
            self.nbytes *= side
        self.owned_bytes = self.nbytes if CARD.take(self.nbytes) else 0
        if self.owned_bytes < self.nbytes:
            raise cuda.OutOfMemoryError("CUDA out of memory")

    def __del__(self) -> None:
        CARD.taken_bytes -= self.__dict__.get("owned_bytes", 0)

    def to(self, kind: dtype) -> "Tensor":
        return Tensor(self.shape, kind)

    def t(self) -> "Tensor":
        view = Tensor.__new__(Tensor)
        view.shape, view.dtype, view.nbytes, view.owned_bytes = self.shape[::-1], self.dtype, self.nbytes, 0
        return view

    def copy_(self, other: "Tensor") -> None:
        CARD.move("copy", self.nbytes + other.nbytes)


def randn(*shape: int, dtype: dtype, device: str) -> Tensor:
    return Tensor(shape, dtype)


def randint(low: int, high: int, shape: tuple[int, ...], *, dtype: dtype, device: str) -> Tensor:
    return Tensor(shape, dtype)


def ones(shape: tuple[int, ...], *, dtype: dtype, device: str) -> Tensor:
    return Tensor(shape, dtype)


def empty_like(other: Tensor) -> Tensor:
    return Tensor(other.shape, other.dtype)


def add(b: Tensor, c: Tensor, *, alpha: float, out: Tensor) -> None:
    CARD.move("triad", b.nbytes + c.nbytes + out.nbytes)


def set_float32_matmul_precision(name: str) -> None:
    _PRECISION["now"] = name


def mm(a: Tensor, b: Tensor, *, out: Tensor) -> None:
    is_tf32 = a.dtype is float32 and _PRECISION["now"] == "high"
    CARD.multiply("tf32" if is_tf32 else a.dtype.name, out.shape[0])


def _int_mm(a: Tensor, b: Tensor) -> Tensor:
    CARD.multiply("int8", a.shape[0])
    return Tensor((1,), float32)


def _scaled_mm(a: Tensor, b: Tensor, **more: Any) -> Tensor:
    CARD.multiply(a.dtype.name, a.shape[0])
    return Tensor(a.shape, more["out_dtype"])
