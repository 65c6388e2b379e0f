"""Not torch.cuda."""

from types import SimpleNamespace

from simulated_card import CARD  # type: ignore[import-not-found]


class OutOfMemoryError(RuntimeError):
    pass


class Event:
    def __init__(self, *, enable_timing: bool) -> None:
        self.at_s = -1.0

    def record(self) -> None:
        self.at_s = CARD.clock_s

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: "Event") -> float:
        return (end.at_s - self.at_s) * 1000


def is_available() -> bool:
    CARD.misbehave()
    return bool(CARD.behaviour != "no card")


def device_count() -> int:
    return int(CARD.count)


def set_device(index: int) -> None:
    pass


def get_device_properties(index: int) -> SimpleNamespace:
    return SimpleNamespace(name=CARD.name, L2_cache_size=CARD.cache_bytes)


def get_device_capability(index: int) -> tuple[int, int]:
    return tuple(CARD.capability)


def mem_get_info(index: int) -> tuple[int, int]:
    return CARD.free_bytes, CARD.total_bytes


def set_per_process_memory_fraction(fraction: float, index: int) -> None:
    CARD.limit_bytes = int(fraction * CARD.total_bytes)


def synchronize() -> None:
    pass


def empty_cache() -> None:
    pass
