"""A fake NVML library (no driver, no GPU) that stands behind the REAL pynvml binding.

The binding looks its C functions up as attributes of `pynvml.nvmlLib`. `install` puts a `FakeNvml` there, so all of
the binding's own code runs: structures are filled by reference, return codes become its NVMLError classes, and a symbol
that the fake does not have becomes FunctionNotFound. What a real driver does beyond that is not shown by these tests.
"""

import ctypes
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pynvml
import pytest

SUCCESS, UNINITIALIZED, NOT_SUPPORTED, NO_PERMISSION, TIMEOUT = 0, 1, 3, 4, 10
GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH, UNKNOWN = 15, 16, 18, 999

MEMORY_V2 = "nvmlDeviceGetMemoryInfo_v2"
MEMORY_V1 = "nvmlDeviceGetMemoryInfo"
HANDLE = "nvmlDeviceGetHandleByIndex_v2"
COUNT = "nvmlDeviceGetCount_v2"
INIT = "nvmlInitWithFlags"
TEMPERATURE_NEW = "nvmlDeviceGetTemperatureV"

GIB = 1024**3

MEMINFO = "MemTotal:       125829120 kB\nMemFree:         1000000 kB\nMemAvailable:   104857600 kB\nCached: 9 kB\n"


@dataclass
class FakeCard:
    """An H100 SXM by default. `errors` maps a C symbol to the return code it gives for this card."""

    name: bytes = b"NVIDIA H100 80GB HBM3"
    uuid: bytes = b"GPU-00000000-canary-uuid"
    total: int = 81_559 * 1024**2
    used: int = 10 * GIB
    reserved: int = GIB // 2
    gpu: int = 97
    memory: int = 41
    clocks: tuple[int, int] = (1_755, 2_619)
    max_clocks: tuple[int, int] = (1_980, 2_619)
    power_mw: int = 412_345
    limit_mw: int = 700_000
    temperature: int = 56
    bus_bits: int = 5_120
    mig: int = 0
    errors: dict[str, int] = field(default_factory=dict)

    @property
    def free(self) -> int:
        """As version 2 counts it: what is neither used nor reserved."""
        return self.total - self.used - self.reserved


class FakeNvml:
    """Answers for the C symbols below; `missing` are not in this "driver"; `errors` are return codes for any card."""

    def __init__(self, *cards: FakeCard, missing: tuple[str, ...] = (), driver: bytes = b"590.44.01") -> None:
        self.cards, self.missing, self.driver = list(cards), missing, driver
        self.count: int | None = None
        self.errors: dict[str, int] = {}
        self.calls: Counter[str] = Counter()
        self.hook: Callable[[str], None] = lambda symbol: None
        self._symbols: dict[str, Callable[..., None]] = {
            INIT: lambda flags: None,
            "nvmlShutdown": lambda: None,
            "nvmlSystemGetDriverVersion": lambda buffer, length: self._write(buffer, self.driver),
            COUNT: lambda out: self._put(out, len(self.cards) if self.count is None else self.count),
            HANDLE: lambda index, out: self._put_handle(out, index.value),
            "nvmlDeviceGetName": lambda card, buffer, length: self._write(buffer, card.name),
            "nvmlDeviceGetUUID": lambda card, buffer, length: self._write(buffer, card.uuid),
            MEMORY_V1: self._memory_v1,
            MEMORY_V2: self._memory_v2,
            "nvmlDeviceGetUtilizationRates": self._utilization,
            "nvmlDeviceGetClockInfo": lambda card, kind, out: self._put(out, card.clocks[kind.value - 1]),
            "nvmlDeviceGetMaxClockInfo": lambda card, kind, out: self._put(out, card.max_clocks[kind.value - 1]),
            "nvmlDeviceGetPowerUsage": lambda card, out: self._put(out, card.power_mw),
            "nvmlDeviceGetEnforcedPowerLimit": lambda card, out: self._put(out, card.limit_mw),
            TEMPERATURE_NEW: lambda card, out: setattr(out._obj, "temperature", card.temperature),
            "nvmlDeviceGetTemperature": lambda card, sensor, out: self._put(out, card.temperature),
            "nvmlDeviceGetMemoryBusWidth": lambda card, out: self._put(out, card.bus_bits),
            "nvmlDeviceGetMigMode": lambda card, current, pending: self._put(current, card.mig),
        }

    def __getattr__(self, symbol: str) -> Callable[..., int]:
        self.calls[symbol] += 1
        if symbol in self.missing or symbol not in self._symbols:
            raise AttributeError(symbol)
        return lambda *arguments: self._run(symbol, arguments)

    def _run(self, symbol: str, arguments: tuple[Any, ...]) -> int:
        self.calls[symbol + "()"] += 1
        self.hook(symbol)
        code: int = self.errors.get(symbol, SUCCESS)
        if symbol == HANDLE:
            code = code or self.cards[arguments[0].value].errors.get(symbol, SUCCESS)
        elif symbol.startswith("nvmlDevice") and symbol != COUNT:
            card = self.cards[self._address(arguments[0]).value - 1]
            code = code or card.errors.get(symbol, card.errors.get("*", SUCCESS))
            arguments = (card, *arguments[1:])
        if code == SUCCESS:
            self._symbols[symbol](*arguments)
        return code

    @staticmethod
    def _address(pointer: Any) -> Any:
        return ctypes.c_void_p.from_address(ctypes.addressof(pointer))

    def _put_handle(self, out: Any, index: int) -> None:
        self._address(out._obj).value = index + 1

    @staticmethod
    def _put(out: Any, value: int) -> None:
        out._obj.value = value

    @staticmethod
    def _write(buffer: Any, text: bytes) -> None:
        buffer.value = text[: len(buffer) - 1]

    @staticmethod
    def _memory_v1(card: FakeCard, out: Any) -> None:
        out._obj.total, out._obj.free, out._obj.used = card.total, card.free, card.used + card.reserved

    @staticmethod
    def _memory_v2(card: FakeCard, out: Any) -> None:
        out._obj.total, out._obj.free, out._obj.used = card.total, card.free, card.used
        out._obj.reserved = card.reserved

    @staticmethod
    def _utilization(card: FakeCard, out: Any) -> None:
        out._obj.gpu, out._obj.memory = card.gpu, card.memory


class FakeClock:
    """Seconds that pass only when told to."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def install(library: object | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the library behind the binding for one test, with an empty cache of functions; both are put back."""
    monkeypatch.setattr(pynvml, "nvmlLib", library)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    monkeypatch.setattr(pynvml, "_nvmlLib_refcount", 0)
