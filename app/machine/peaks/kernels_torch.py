"""Measuring with torch, on CUDA and on ROCm. The library is loaded when a card is opened, in the worker alone."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
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

AMPERE = (8, 0)
"""Compute capability from which there are bf16 and TF32; torch computes them on older cards too, but not so fast."""

_SCALE = 0.4
_PLAIN = {Dtype.BF16: "bfloat16", Dtype.FP16: "float16", Dtype.FP32: "float32", Dtype.TF32: "float32"}
# OCP's format, and the one that AMD's CDNA 3 has instead of it.
_EIGHT_BITS = ("float8_e4m3fn", "float8_e4m3fnuz")


class TorchKernels:
    """Passes of torch on one card.

    Raises:
        ImportError, OSError: torch is not there, or what it was built for is not.
        NoAcceleratorError: torch was built without one, or finds none.
        NoSuchCardError: it sees fewer cards.
    """

    library = "torch"

    def __init__(self, device: int) -> None:
        import torch

        if not torch.cuda.is_available():
            raise NoAcceleratorError
        if device >= torch.cuda.device_count():
            raise NoSuchCardError(torch.cuda.device_count())
        torch.cuda.set_device(device)
        self._torch: Any = torch
        self._device = device
        self._is_hip = getattr(torch.version, "hip", None) is not None

    def versions(self) -> dict[str, str]:
        """torch's, and that of the CUDA or ROCm it was built for."""
        version = self._torch.version
        platform = {"rocm": version.hip} if self._is_hip else {"cuda": getattr(version, "cuda", None)}
        return {"torch": str(self._torch.__version__)} | {name: str(of) for name, of in platform.items() if of}

    def card(self) -> SeenCard:
        """The card as the runtime describes it."""
        properties = self._torch.cuda.get_device_properties(self._device)
        free, total = self._torch.cuda.mem_get_info(self._device)
        cache = getattr(properties, "L2_cache_size", 0)
        return SeenCard(str(properties.name), int(total), int(free), int(cache) or None)

    def limit_memory(self, most_bytes: int) -> None:
        """Through the caching allocator; cuBLAS's workspace counts, too."""
        total = self._torch.cuda.mem_get_info(self._device)[1]
        self._torch.cuda.set_per_process_memory_fraction(min(1.0, most_bytes / total), self._device)

    def streams(self, elements: int) -> Mapping[Stream, Work]:
        """A copy by the runtime, and a triad in one kernel."""
        torch = self._torch
        with self._named_memory_errors():
            a, b, c = (self._random(torch.float32, elements) for _ in range(3))
        return {Stream.COPY: lambda: a.copy_(b), Stream.TRIAD: lambda: torch.add(b, c, alpha=_SCALE, out=a)}

    def product(self, dtype: Dtype, size: int) -> Work:
        """By the vendor's library; operands of 8 bits with the second one in column order, as it wants them."""
        if dtype in _PLAIN:
            return self._tried(partial(self._plain, dtype, size))
        if dtype is Dtype.INT8:
            return self._tried(partial(self._int8, size))
        if dtype is Dtype.FP8:
            return self._fp8(size)
        raise NotOfferedError

    def intervals_s(self, work: Work, count: int) -> list[float]:
        """Events are recorded between the passes, so that the card never waits for the processor to look at a clock."""
        events = [self._torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        with self._named_memory_errors():
            events[0].record()
            for event in events[1:]:
                work()
                event.record()
        events[-1].synchronize()
        return [before.elapsed_time(after) / 1000 for before, after in pairwise(events)]

    def release(self) -> None:
        """Waits for the card, then empties the allocator's cache."""
        self._torch.cuda.synchronize()
        self._torch.cuda.empty_cache()

    def _plain(self, dtype: Dtype, size: int) -> Work:
        torch = self._torch
        if dtype in (Dtype.BF16, Dtype.TF32) and not self._has_ampere_formats(dtype):
            raise NotOfferedError
        torch.set_float32_matmul_precision("high" if dtype is Dtype.TF32 else "highest")
        kind = getattr(torch, _PLAIN[dtype])
        a, b = self._random(kind, size, size), self._random(kind, size, size)
        c = torch.empty_like(a)
        return lambda: torch.mm(a, b, out=c)

    def _int8(self, size: int) -> Work:
        torch = self._torch
        a, b = (torch.randint(-128, 128, (size, size), dtype=torch.int8, device=self._place) for _ in range(2))
        multiply = torch._int_mm
        return lambda: multiply(a, b.t())

    def _fp8(self, size: int) -> Work:
        torch = self._torch
        one = torch.ones((), dtype=torch.float32, device=self._place)

        def of(name: str) -> Work:
            kind, multiply = getattr(torch, name), torch._scaled_mm
            a, b = (self._random(torch.bfloat16, size, size).to(kind) for _ in range(2))
            # Fast accumulation is what the vendors' rates are stated for.
            return lambda: multiply(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)

        for name in _EIGHT_BITS:
            try:
                return self._tried(partial(of, name))
            except NotOfferedError:
                continue
        raise NotOfferedError

    def _tried(self, make: Callable[[], Work]) -> Work:
        """The work after one pass. What torch or the card does not have shows only then, as one of many errors."""
        with self._named_memory_errors():
            try:
                work = make()
                work()
            except self._torch.cuda.OutOfMemoryError:
                raise
            except (RuntimeError, AttributeError, TypeError, ValueError) as error:
                raise NotOfferedError from error
        return work

    def _has_ampere_formats(self, dtype: Dtype) -> bool:
        if self._is_hip:
            return dtype is Dtype.BF16
        return tuple(self._torch.cuda.get_device_capability(self._device)) >= AMPERE

    def _random(self, kind: Any, *shape: int) -> Any:
        return self._torch.randn(*shape, dtype=kind, device=self._place)

    @property
    def _place(self) -> str:
        return f"cuda:{self._device}"

    @contextmanager
    def _named_memory_errors(self) -> Iterator[None]:
        try:
            yield
        except self._torch.cuda.OutOfMemoryError as error:
            raise OutOfCardMemoryError from error
