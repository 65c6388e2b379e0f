"""Measuring with cupy, on CUDA and on ROCm. The library is loaded when a card is opened, in the worker alone."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from typing import Any

from app.calc.dtypes import Dtype
from app.machine.peaks.outcome import Stream
from app.machine.peaks.steps import (
    NoAcceleratorError,
    NoSuchCardError,
    NotOfferedError,
    OutOfCardMemoryError,
    SeenCard,
    Work,
)

AMPERE = 80

_SCALE = 0.4
# Its integer products come from a kernel of its own, far from the card's rate, or with a pass over the result behind
# them; of fp8 it has none; bf16 came late, with the element type of another package.
_FORMATS = {Dtype.FP16: "float16", Dtype.BF16: "bfloat16", Dtype.FP32: "float32", Dtype.TF32: "float32"}


class CupyKernels:
    """Passes of cupy on one card.

    Raises:
        ImportError, OSError: cupy is not there, or what it was built for is not.
        NoAcceleratorError: it finds no accelerator.
        NoSuchCardError: it sees fewer cards.
    """

    library = "cupy"

    def __init__(self, device: int) -> None:
        import cupy

        runtime = cupy.cuda.runtime
        try:
            count = int(runtime.getDeviceCount())
        except runtime.CUDARuntimeError as error:
            raise NoAcceleratorError from error
        if count == 0:
            raise NoAcceleratorError
        if device >= count:
            raise NoSuchCardError(count)
        cupy.cuda.Device(device).use()
        self._cupy: Any = cupy
        self._runtime: Any = runtime
        self._device = device
        self._triad = cupy.ElementwiseKernel(
            "float32 b, float32 c, float32 s", "float32 a", "a = b + s * c", "tokenroof_triad"
        )

    def versions(self) -> dict[str, str]:
        """cupy's, and that of the CUDA or ROCm runtime."""
        number = int(self._runtime.runtimeGetVersion())
        platform = {"rocm": str(number)} if self._is_hip else {"cuda": f"{number // 1000}.{number % 1000 // 10}"}
        return {"cupy": str(self._cupy.__version__)} | platform

    def card(self) -> SeenCard:
        """The card as the runtime describes it."""
        properties = self._runtime.getDeviceProperties(self._device)
        free, total = self._runtime.memGetInfo()
        name = properties["name"]
        text = name.decode("utf-8", errors="replace") if isinstance(name, bytes) else str(name)
        return SeenCard(text, int(total), int(free), int(properties.get("l2CacheSize", 0)) or None)

    def limit_memory(self, most_bytes: int) -> None:
        self._cupy.get_default_memory_pool().set_limit(size=most_bytes)

    def streams(self, elements: int) -> Mapping[Stream, Work]:
        """A copy by the runtime, and a triad in one kernel."""
        cupy = self._cupy
        with self._named_memory_errors():
            a, b, c = (cupy.random.random(elements, dtype=cupy.float32) for _ in range(3))
        return {Stream.COPY: lambda: cupy.copyto(a, b), Stream.TRIAD: lambda: self._triad(b, c, _SCALE, a)}

    def product(self, dtype: Dtype, size: int) -> Work:
        if dtype not in _FORMATS or (dtype in (Dtype.TF32, Dtype.BF16) and not self._has_ampere_formats):
            raise NotOfferedError
        with self._named_memory_errors():
            try:
                work = self._product(dtype, size)
                work()
            except (ImportError, RuntimeError, AttributeError, TypeError, ValueError) as error:
                raise NotOfferedError from error
        return work

    def intervals_s(self, work: Work, count: int) -> list[float]:
        """Events are recorded between the passes, so that the card never waits for the processor to look at a clock."""
        cuda = self._cupy.cuda
        events = [cuda.Event() for _ in range(count + 1)]
        with self._named_memory_errors():
            events[0].record()
            for event in events[1:]:
                work()
                event.record()
        events[-1].synchronize()
        return [cuda.get_elapsed_time(before, after) / 1000 for before, after in pairwise(events)]

    def release(self) -> None:
        """Waits for the card, then empties the pool."""
        self._runtime.deviceSynchronize()
        self._cupy.get_default_memory_pool().free_all_blocks()

    def _product(self, dtype: Dtype, size: int) -> Work:
        cupy = self._cupy
        if dtype in (Dtype.FP32, Dtype.TF32):
            # cupy's documented switch is an environment variable that is read once; this is what it sets.
            linear = import_module("cupy._core._routines_linalg")
            wanted = "COMPUTE_TYPE_TF32" if dtype is Dtype.TF32 else "COMPUTE_TYPE_DEFAULT"
            linear.set_compute_type(cupy.float32, getattr(linear, wanted))
        kind = import_module("ml_dtypes").bfloat16 if dtype is Dtype.BF16 else getattr(cupy, _FORMATS[dtype])
        a, b = (cupy.random.standard_normal((size, size), dtype=cupy.float32).astype(kind) for _ in range(2))
        c = cupy.empty((size, size), dtype=kind)
        return lambda: cupy.dot(a, b, out=c)

    @property
    def _is_hip(self) -> bool:
        return bool(getattr(self._runtime, "is_hip", False))

    @property
    def _has_ampere_formats(self) -> bool:
        return not self._is_hip and int(self._cupy.cuda.Device(self._device).compute_capability) >= AMPERE

    @contextmanager
    def _named_memory_errors(self) -> Iterator[None]:
        try:
            yield
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise OutOfCardMemoryError from error
