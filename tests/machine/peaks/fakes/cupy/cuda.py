"""Not cupy.cuda."""

from types import SimpleNamespace

from simulated_card import CARD  # type: ignore[import-not-found]


class CUDARuntimeError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


memory = SimpleNamespace(OutOfMemoryError=OutOfMemoryError)


class Event:
    at_s = -1.0

    def record(self) -> None:
        self.at_s = CARD.clock_s

    def synchronize(self) -> None:
        pass


def get_elapsed_time(start: Event, end: Event) -> float:
    return (end.at_s - start.at_s) * 1000


class Device:
    compute_capability = "{}{}".format(*CARD.capability)

    def __init__(self, index: int) -> None:
        pass

    def use(self) -> None:
        pass


def _count() -> int:
    CARD.misbehave()
    if CARD.behaviour == "no card":
        raise CUDARuntimeError("cudaErrorNoDevice")
    return int(CARD.count)


def _properties(index: int) -> dict[str, object]:
    return {"name": CARD.name.encode(), "l2CacheSize": CARD.cache_bytes}


runtime = SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError,
    is_hip=CARD.hip,
    getDeviceCount=_count,
    getDeviceProperties=_properties,
    memGetInfo=lambda: (CARD.free_bytes, CARD.total_bytes),
    runtimeGetVersion=lambda: 12080,
    deviceSynchronize=lambda: None,
)
