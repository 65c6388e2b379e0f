"""Not cupy: as much of its face as the worker asks for, over a card that does not exist."""

from collections.abc import Callable
from types import SimpleNamespace

from simulated_card import CARD  # type: ignore[import-not-found]

from . import cuda
from ._core import _routines_linalg as linear

__all__ = ["cuda"]
__version__ = "14.1.0+fake"
float32, float16 = SimpleNamespace(name="fp32", itemsize=4), SimpleNamespace(name="fp16", itemsize=2)


class ndarray:  # noqa: N801 - cupy's name
    def __init__(self, shape: tuple[int, ...], kind: SimpleNamespace) -> None:
        self.shape, self.dtype, self.nbytes = shape, kind, kind.itemsize
        for side in shape:
            self.nbytes *= side
        self.owned_bytes = self.nbytes if CARD.take(self.nbytes) else 0
        if self.owned_bytes < self.nbytes:
            raise cuda.memory.OutOfMemoryError("out of memory")

    def __del__(self) -> None:
        CARD.taken_bytes -= self.owned_bytes

    def astype(self, kind: SimpleNamespace) -> "ndarray":
        return ndarray(self.shape, kind)


def _random(size: int, *, dtype: SimpleNamespace) -> ndarray:
    return ndarray((size,), dtype)


def _normal(shape: tuple[int, int], *, dtype: SimpleNamespace) -> ndarray:
    return ndarray(shape, dtype)


random = SimpleNamespace(random=_random, standard_normal=_normal)


def empty(shape: tuple[int, int], *, dtype: SimpleNamespace) -> ndarray:
    return ndarray(shape, dtype)


def copyto(a: ndarray, b: ndarray) -> None:
    CARD.move("copy", a.nbytes + b.nbytes)


def ElementwiseKernel(inputs: str, outputs: str, code: str, name: str) -> Callable[..., None]:  # noqa: N802
    def run(b: ndarray, c: ndarray, scale: float, a: ndarray) -> None:
        CARD.move("triad", a.nbytes + b.nbytes + c.nbytes)

    return run


def dot(a: ndarray, b: ndarray, *, out: ndarray) -> None:
    is_tf32 = a.dtype is float32 and linear.NOW["type"] == linear.COMPUTE_TYPE_TF32
    CARD.multiply("tf32" if is_tf32 else a.dtype.name, out.shape[0])


def get_default_memory_pool() -> SimpleNamespace:
    def set_limit(*, size: int) -> None:
        CARD.limit_bytes = size

    return SimpleNamespace(set_limit=set_limit, free_all_blocks=lambda: None)
