"""A fake of ROCm's Python binding, amdsmi 7.0 (no library, no card): a module of functions put into `sys.modules`.

It takes the arguments that the real binding takes and refuses others as that does, answers in the same shapes, turns
the same sentinels into "N/A" and overlooks the same others, and raises exceptions of the same kinds and attributes.
What the library behind the binding does is not shown by these tests. `test_amd_contract` compares the names and the
arguments with the binding itself, where that is installed.
"""

import inspect
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from types import ModuleType
from typing import Any

import pytest

NOT_SUPPORTED, FAIL_LOAD_SYMBOL, TIMEOUT, NO_PERMISSION, BUSY, NOT_FOUND = 2, 5, 8, 10, 30, 31
NOT_INITIALIZED, DRIVER_NOT_LOADED, RESTART_FAILED = 32, 34, 54

UINT16, UINT32, UINT64 = 0xFFFF, 2**32 - 1, 2**64 - 1

MIB, GIB = 2**20, 2**30


class AmdSmiException(Exception):  # noqa: N818  The binding's name.
    pass


class AmdSmiLibraryException(AmdSmiException):
    def __init__(self, err_code: int) -> None:
        super().__init__(abs(err_code))
        self.err_code = abs(err_code)


class AmdSmiParameterException(AmdSmiException):
    """The binding gives it a code that is no number."""

    err_code = None


class AmdSmiClkType(IntEnum):
    SYS = 0
    GFX = 0
    MEM = 4


class AmdSmiTemperatureType(IntEnum):
    EDGE = 0
    HOTSPOT = 1
    JUNCTION = 1
    VRAM = 2


class AmdSmiTemperatureMetric(IntEnum):
    CURRENT = 0


class AmdSmiMemoryType(IntEnum):
    VRAM = 0
    VIS_VRAM = 1
    GTT = 2


class AmdSmiVramType(IntEnum):
    UNKNOWN = 0
    HBM2E = 3
    HBM3 = 4
    DDR4 = 12
    GDDR6 = 18


ENUMERATIONS = (AmdSmiClkType, AmdSmiTemperatureType, AmdSmiTemperatureMetric, AmdSmiMemoryType, AmdSmiVramType)


def _residencies() -> dict[str, int]:
    names = ("prochot", "ppt", "socket_thm", "vr_thm", "hbm_thm")
    return {"accumulation_counter": 1_000_000, **{f"{name}_residency_acc": 500 for name in names}}


@dataclass
class FakeCard:
    """An MI300X by default, in the raw figures of the library. `errors` maps a function to the code it fails with for
    this card ("*" for all), `answers` a function to what it returns in place of its own answer.
    """

    name: str = "AMD Instinct MI300X"
    target: str = "gfx942"
    uuid: str = "12ff74a1-0000-1000-8012-canary000001"
    bdf: str = "0000:0c:00.0"
    vram: tuple[int, int] = (196_592 * MIB, 20 * GIB)
    gtt: tuple[int, int] = (512 * GIB, 2 * GIB)
    gfx: int = 97
    umc: int = 41
    clocks: tuple[int, int] = (2_100, 2_100)
    memory_clocks: tuple[int, int] = (1_300, 1_300)
    power: dict[str, int] = field(
        default_factory=lambda: {
            "socket_power": 650,
            "current_socket_power": 650,
            "average_socket_power": UINT16,
            "power_limit": 750,
        }
    )
    temperatures: dict[str, int] = field(default_factory=lambda: {"HOTSPOT": 63, "VRAM": 48})
    pcie: tuple[int, int] = (16, 32_000)
    links: list[tuple[int, int]] = field(default_factory=lambda: [(9_000_000, 8_000_000)] * 7 + [(UINT64, UINT64)])
    metrics: dict[str, Any] = field(default_factory=_residencies)
    vram_type: int = AmdSmiVramType.HBM3
    bus_bits: int = 8_192
    max_bandwidth: int = 5_300
    partition: str = "SPX"
    errors: dict[str, int] = field(default_factory=dict)
    answers: dict[str, object] = field(default_factory=dict)


class _Handle:
    def __init__(self, card: FakeCard) -> None:
        self.card = card


class FakeAmdSmi:
    """The module; `missing` functions are not in this release, `errors` are codes that functions fail with."""

    def __init__(self, *cards: FakeCard, missing: tuple[str, ...] = (), driver: str = "6.12.12") -> None:
        self.cards, self.driver = list(cards), driver
        self.errors: dict[str, int] = {}
        self.calls: Counter[str] = Counter()
        self.handles: object = None
        functions: dict[str, Callable[..., Any]] = {
            "amdsmi_get_gpu_asic_info": self._asic,
            "amdsmi_get_gpu_device_uuid": lambda card: card.uuid,
            "amdsmi_get_gpu_device_bdf": lambda card: card.bdf,
            "amdsmi_get_gpu_driver_info": lambda card: {
                "driver_name": "amdgpu",
                "driver_version": self.driver or "N/A",
                "driver_date": "N/A",
            },
            "amdsmi_get_gpu_memory_total": lambda card, kind: self._memory(card, kind, 0),
            "amdsmi_get_gpu_memory_usage": lambda card, kind: self._memory(card, kind, 1),
            "amdsmi_get_gpu_vram_usage": lambda card: {
                "vram_total": card.vram[0] // MIB,
                "vram_used": card.vram[1] // MIB,
            },
            "amdsmi_get_gpu_vram_info": self._vram_info,
            "amdsmi_get_gpu_activity": lambda card: {
                key: "N/A" if value == UINT16 else value
                for key, value in (("gfx_activity", card.gfx), ("umc_activity", card.umc), ("mm_activity", UINT16))
            },
            "amdsmi_get_clock_info": self._clock,
            "amdsmi_get_power_info": lambda card: {
                key: "N/A" if value == UINT16 else value for key, value in card.power.items()
            },
            "amdsmi_get_power_cap_info": lambda card: {"power_cap": 760_000_000, "max_power_cap": 800_000_000},
            "amdsmi_get_temp_metric": self._temperature,
            "amdsmi_get_pcie_info": self._pcie,
            "amdsmi_get_link_metrics": self._links,
            "amdsmi_get_gpu_metrics_info": lambda card: {"common_header.format_revision": 1} | card.metrics,
            "amdsmi_get_gpu_compute_partition": lambda card: card.partition,
        }
        self.parameters = {name: len(inspect.signature(function).parameters) for name, function in functions.items()}
        self.module = ModuleType("amdsmi")
        for each in (*ENUMERATIONS, AmdSmiException, AmdSmiLibraryException, AmdSmiParameterException):
            setattr(self.module, each.__name__, each)
        for name, function in functions.items():
            setattr(self.module, name, self._of_card(name, function))
        for name, function in (
            ("amdsmi_init", lambda: None),
            ("amdsmi_shut_down", lambda: None),
            ("amdsmi_get_processor_handles", self._handles),
        ):
            self.parameters[name] = 0
            setattr(self.module, name, self._counted(name, function))
        for name in missing:
            delattr(self.module, name)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Puts the module in the place of the package for one test."""
        monkeypatch.setitem(sys.modules, "amdsmi", self.module)

    def _counted(self, name: str, function: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> Any:
            self.calls[name] += 1
            if code := self.errors.get(name):
                raise AmdSmiLibraryException(code)
            return function()

        return call

    def _of_card(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(processor_handle: object, *arguments: object) -> Any:
            self.calls[name] += 1
            if not isinstance(processor_handle, _Handle):
                raise AmdSmiParameterException
            card = processor_handle.card
            code = self.errors.get(name) or card.errors.get(name, card.errors.get("*"))
            if code:
                raise AmdSmiLibraryException(code)
            if name in card.answers:
                answer = card.answers[name]
                if isinstance(answer, Exception):
                    raise answer
                return answer
            return function(card, *arguments)

        return call

    def _handles(self) -> Any:
        return [_Handle(card) for card in self.cards] if self.handles is None else self.handles

    @staticmethod
    def _expect(argument: object, kind: type[IntEnum]) -> None:
        if not isinstance(argument, kind):
            raise AmdSmiParameterException

    @staticmethod
    def _asic(card: FakeCard) -> dict[str, Any]:
        return {
            "market_name": card.name or "N/A",
            "vendor_id": "0x1002",
            "asic_serial": "0x0123CANARY",
            "target_graphics_version": card.target,
        }

    def _memory(self, card: FakeCard, kind: AmdSmiMemoryType, which: int) -> int:
        self._expect(kind, AmdSmiMemoryType)
        return (card.gtt if kind is AmdSmiMemoryType.GTT else card.vram)[which]

    @staticmethod
    def _vram_info(card: FakeCard) -> dict[str, Any]:
        return {
            "vram_type": int(card.vram_type),
            "vram_vendor": "N/A",
            "vram_size": card.vram[0] // MIB,
            "vram_bit_width": "N/A" if card.bus_bits == UINT32 else card.bus_bits,
            "vram_max_bandwidth": card.max_bandwidth,
        }

    def _clock(self, card: FakeCard, kind: AmdSmiClkType) -> dict[str, Any]:
        self._expect(kind, AmdSmiClkType)
        now, most = card.memory_clocks if kind is AmdSmiClkType.MEM else card.clocks
        return {
            "clk": "N/A" if now == UINT32 else now,
            "min_clk": 132,
            "max_clk": "N/A" if most == UINT32 else most,
            "clk_locked": "N/A",
            "clk_deep_sleep": "N/A",
        }

    def _temperature(self, card: FakeCard, sensor: AmdSmiTemperatureType, metric: AmdSmiTemperatureMetric) -> int:
        self._expect(sensor, AmdSmiTemperatureType)
        self._expect(metric, AmdSmiTemperatureMetric)
        if sensor.name not in card.temperatures:
            raise AmdSmiLibraryException(NOT_SUPPORTED)
        return card.temperatures[sensor.name]

    @staticmethod
    def _pcie(card: FakeCard) -> dict[str, Any]:
        width, speed = card.pcie
        return {
            "pcie_static": {"max_pcie_width": 16, "max_pcie_speed": 32_000, "pcie_interface_version": 5},
            "pcie_metric": {
                "pcie_width": "N/A" if width == UINT16 else width,
                "pcie_speed": "N/A" if speed == UINT32 else speed,
                "pcie_bandwidth": 1_234,
            },
        }

    @staticmethod
    def _links(card: FakeCard) -> dict[str, Any]:
        links = [
            {"bdf": "0000:00:00.0", "bit_rate": 32, "max_bandwidth": 16, "link_type": 2, "read": read, "write": write}
            for read, write in card.links
        ]
        return {"num_links": len(links), "links": links}


class FakeClock:
    """Seconds that pass only when told to."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s
