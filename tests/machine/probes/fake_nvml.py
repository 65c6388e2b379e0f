"""A fake NVML library (no driver, no GPU) that stands behind the REAL pynvml binding.

The binding looks its C functions up as attributes of `pynvml.nvmlLib`. `install` puts a `FakeNvml` there, so all of
the binding's own code runs: structures are filled by reference, return codes become its NVMLError classes, and a symbol
that the fake does not have becomes FunctionNotFound. What a real driver does beyond that is not shown by these tests.
"""

import ctypes
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pynvml
import pytest

SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, TIMEOUT = 0, 1, 2, 3, 4, 6, 10
GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH, UNKNOWN = 15, 16, 18, 999

MEMORY_V2 = "nvmlDeviceGetMemoryInfo_v2"
MEMORY_V1 = "nvmlDeviceGetMemoryInfo"
HANDLE = "nvmlDeviceGetHandleByIndex_v2"
COUNT = "nvmlDeviceGetCount_v2"
INIT = "nvmlInitWithFlags"
TEMPERATURE_NEW = "nvmlDeviceGetTemperatureV"
REASONS_NEW = "nvmlDeviceGetCurrentClocksEventReasons"
REASONS_OLD = "nvmlDeviceGetCurrentClocksThrottleReasons"
ADDRESSING = "nvmlDeviceGetAddressingMode"
FIELDS = "nvmlDeviceGetFieldValues"
PCIE_THROUGHPUT = "nvmlDeviceGetPcieThroughput"
MIG_HANDLE = "nvmlDeviceGetMigDeviceHandleByIndex"
GPM_SUPPORT, GPM_ALLOC, GPM_FREE = "nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleFree"
GPM_SAMPLE, GPM_MIG_SAMPLE, GPM_METRICS = "nvmlGpmSampleGet", "nvmlGpmMigSampleGet", "nvmlGpmMetricsGet"

_OF_A_CARD = frozenset({GPM_SUPPORT, GPM_SAMPLE, GPM_MIG_SAMPLE})

# Field values by their numbers in nvml.h, and the numbers of the value types.
MEMORY_TEMPERATURE, NVLINK_SENT, NVLINK_RECEIVED, PCIE_SENT, PCIE_RECEIVED = 82, 138, 139, 197, 198
DOUBLE, UNSIGNED_INT, UNSIGNED_LONG_LONG = 0, 1, 3
ALL_LINKS = 2**32 - 1

SM_UTIL, SM_OCCUPANCY, ANY_TENSOR, DRAM_BANDWIDTH = 2, 3, 5, 10

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
    reasons: int = 0x4
    capability: tuple[int, int] = (9, 0)
    addressing: int = 1
    pcie: tuple[int, int] = (5, 16)
    pcie_kb_per_s: tuple[int, int] = (1_200_000, 3_400_000)
    instances: list["FakeCard | None"] = field(default_factory=list)
    gpu_instance: int = 0
    gpm_supported: int = 1
    metrics: dict[int, float] = field(
        default_factory=lambda: {SM_UTIL: 88.0, SM_OCCUPANCY: 41.5, ANY_TENSOR: 31.0, DRAM_BANDWIDTH: 62.0}
    )
    metric_errors: dict[int, int] = field(default_factory=dict)
    fields: dict[int, tuple[int, float]] = field(
        default_factory=lambda: {
            MEMORY_TEMPERATURE: (UNSIGNED_INT, 71),
            NVLINK_SENT: (UNSIGNED_LONG_LONG, 5_000_000),
            NVLINK_RECEIVED: (UNSIGNED_LONG_LONG, 7_000_000),
            PCIE_SENT: (UNSIGNED_LONG_LONG, 2**33),
            PCIE_RECEIVED: (UNSIGNED_LONG_LONG, 2**33 + 5),
        }
    )
    field_errors: dict[int, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)

    @property
    def free(self) -> int:
        """As version 2 counts it: what is neither used nor reserved."""
        return self.total - self.used - self.reserved

    def count(self, **added: int) -> None:
        """Lets counters go on: `nvlink_sent` and `_received` in KiB, `pcie_sent` and `_received` in bytes."""
        numbers = {"nvlink_sent": 138, "nvlink_received": 139, "pcie_sent": 197, "pcie_received": 198}
        for name, more in added.items():
            kind, value = self.fields[numbers[name]]
            self.fields[numbers[name]] = (kind, value + more)


class FakeNvml:
    """Answers for the C symbols below; `missing` are not in this "driver"; `errors` are return codes for any card.

    `samples` are the GPM samples that were allocated and not freed; a metric is only worked out of two such. How many
    there still were when the library was shut down is `left_at_shutdown`.
    """

    def __init__(self, *cards: FakeCard, missing: tuple[str, ...] = (), driver: bytes = b"590.44.01") -> None:
        self.cards, self.missing, self.driver = list(cards), missing, driver
        self.count: int | None = None
        self.errors: dict[str, int] = {}
        self.calls: Counter[str] = Counter()
        self.hook: Callable[[str], None] = lambda symbol: None
        self.samples: dict[int, FakeCard | None] = {}
        self.left_at_shutdown = 0
        self._numbers = itertools.count(1)
        self._symbols: dict[str, Callable[..., Any]] = {
            INIT: lambda flags: None,
            "nvmlShutdown": self._shut_down,
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
            "nvmlDeviceGetMaxMigDeviceCount": lambda card, out: self._put(out, len(card.instances)),
            MIG_HANDLE: self._mig_handle,
            "nvmlDeviceGetGpuInstanceId": lambda card, out: self._put(out, card.gpu_instance),
            REASONS_NEW: lambda card, out: self._put(out, card.reasons),
            REASONS_OLD: lambda card, out: self._put(out, card.reasons),
            "nvmlDeviceGetCudaComputeCapability": self._capability,
            ADDRESSING: lambda card, out: setattr(out._obj, "value", card.addressing),
            FIELDS: self._field_values,
            "nvmlDeviceGetCurrPcieLinkGeneration": lambda card, out: self._put(out, card.pcie[0]),
            "nvmlDeviceGetCurrPcieLinkWidth": lambda card, out: self._put(out, card.pcie[1]),
            PCIE_THROUGHPUT: lambda card, which, out: self._put(out, card.pcie_kb_per_s[which.value]),
            GPM_SUPPORT: lambda card, out: setattr(out._obj, "isSupportedDevice", card.gpm_supported),
            GPM_ALLOC: self._allocate,
            GPM_FREE: self._free,
            GPM_SAMPLE: lambda card, sample: self.samples.update({self._address(sample).value: card}),
            GPM_MIG_SAMPLE: self._mig_sample,
            GPM_METRICS: self._metrics,
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
        elif symbol in _OF_A_CARD or (symbol.startswith("nvmlDevice") and symbol != COUNT):
            card = self._card(self._address(arguments[0]).value)
            code = code or card.errors.get(symbol, card.errors.get("*", SUCCESS))
            arguments = (card, *arguments[1:])
        # A C function may find only while it works that it cannot answer: it returns its code.
        return code or self._symbols[symbol](*arguments) or SUCCESS

    @staticmethod
    def _address(pointer: Any) -> Any:
        return ctypes.c_void_p.from_address(ctypes.addressof(pointer))

    def _card(self, handle: int) -> FakeCard:
        """Cards are 1, 2, …; the instances of the first are 1001, 1002, …"""
        of, place = divmod(handle, 1000)
        card = self.cards[(of or place) - 1]
        instance = card.instances[place - 1] if of else card
        assert instance is not None
        return instance

    def _put_handle(self, out: Any, index: int) -> None:
        self._address(out._obj).value = index + 1

    def _mig_handle(self, card: FakeCard, index: Any, out: Any) -> int:
        if index.value >= len(card.instances) or card.instances[index.value] is None:
            return NOT_FOUND
        of = next(place for place, each in enumerate(self.cards, start=1) if each is card)
        self._address(out._obj).value = 1000 * of + index.value + 1
        return SUCCESS

    @staticmethod
    def _capability(card: FakeCard, major: Any, minor: Any) -> None:
        major._obj.value, minor._obj.value = card.capability

    @staticmethod
    def _field_values(card: FakeCard, count: Any, values: Any) -> None:
        for answer in values._obj:
            of_links = answer.fieldId in (NVLINK_SENT, NVLINK_RECEIVED)
            known = answer.fieldId in card.fields and (not of_links or answer.scopeId == ALL_LINKS)
            answer.nvmlReturn = card.field_errors.get(answer.fieldId, SUCCESS if known else INVALID_ARGUMENT)
            if answer.nvmlReturn == SUCCESS:
                answer.valueType, value = card.fields[answer.fieldId]
                name = {DOUBLE: "dVal", UNSIGNED_INT: "uiVal", UNSIGNED_LONG_LONG: "ullVal"}.get(answer.valueType)
                if name is not None:
                    setattr(answer.value, name, value)

    def _shut_down(self) -> None:
        self.left_at_shutdown += len(self.samples)

    def _allocate(self, out: Any) -> None:
        number = next(self._numbers)
        self.samples[number] = None
        self._address(out._obj).value = number

    def _free(self, sample: Any) -> int:
        known = self._address(sample).value in self.samples
        self.samples.pop(self._address(sample).value, None)
        return SUCCESS if known else INVALID_ARGUMENT

    def _mig_sample(self, card: FakeCard, gpu_instance: int, sample: Any) -> int:
        found = [each for each in card.instances if each is not None and each.gpu_instance == gpu_instance]
        if not found:
            return NOT_FOUND
        self.samples[self._address(sample).value] = found[0]
        return SUCCESS

    def _metrics(self, out: Any) -> int:
        request = out._obj
        first, second = (self.samples.get(self._address(each).value) for each in (request.sample1, request.sample2))
        if first is None or second is not first or request.version != 1:
            return INVALID_ARGUMENT
        for metric in request.metrics[: request.numMetrics]:
            if metric.metricId in second.metrics:  # One that this driver does not know is passed over.
                metric.nvmlReturn = second.metric_errors.get(metric.metricId, SUCCESS)
                metric.value = second.metrics[metric.metricId]
        return SUCCESS

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
