"""A card's links: the PCIe generation and lanes, and what goes over PCIe and NVLink each second."""

from collections.abc import Callable
from typing import Any

from app.probes.card import BYTES, BYTES_PER_SECOND
from app.probes.counter_rates import CounterMeter
from app.probes.nvml_device import ALL_LINKS, Device
from app.probes.plausible import whole
from app.probes.reading import Absence, Reading

THROUGHPUT_EVERY_S = 2.0
"""How often the slow PCIe call is made: it waits for 20 ms, once for each direction."""

PCIE_CEILING_BYTES_PER_S = 1e12
NVLINK_CEILING_BYTES_PER_S = 2e13
COUNTER_CEILING = 2**63

# Constants of nvml.h. NVLink counts the payload, without the protocol, in KiB; PCIe counts bytes.
_NVLINK_SENT, _NVLINK_RECEIVED, _PCIE_SENT, _PCIE_RECEIVED = 138, 139, 197, 198
_SENT, _RECEIVED = 0, 1
_BYTES_PER_KIB = 1024
_BYTES_PER_KB = 1000

# Counters that "may wrap" wrap at 32 bits on some drivers, which a busy link fills many times a second. A count beyond
# that is proof of a wider one; until then the difference of two counts proves nothing.
_PROVES_A_WIDE_COUNTER = 2**32

_GENERATION_CEILING, _LANES_CEILING = 10, 32

COUNTER_FIELDS = ((_NVLINK_SENT, ALL_LINKS), (_NVLINK_RECEIVED, ALL_LINKS), _PCIE_SENT, _PCIE_RECEIVED)
"""The fields whose values `LinkMeters.rates` takes, in this order."""


def pcie_link(device: Device, *, integrated: bool) -> dict[str, Reading[int]]:
    """The present generation and number of lanes, by field.

    Both drop while a card idles. An integrated part has no such link, whatever its driver answers.
    """
    generation, lanes = (
        Absence.NOT_SUPPORTED if integrated else device.ask(function)
        for function in ("nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetCurrPcieLinkWidth")
    )
    return {
        "pcie_generation": whole(generation, "", ceiling=_GENERATION_CEILING),
        "pcie_lanes": whole(lanes, "", ceiling=_LANES_CEILING),
    }


class LinkMeters:
    """What one card sends and receives, as seen from the card, in bytes per second of `clock`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._nvlink = [CounterMeter(clock, NVLINK_CEILING_BYTES_PER_S) for _ in range(2)]
        self._pcie = [CounterMeter(clock, PCIE_CEILING_BYTES_PER_S) for _ in range(2)]
        self._pcie_is_wide = False
        self._throughput: tuple[Any, Any] | None = None
        self._throughput_at = 0.0

    def rates(self, device: Device, counts: list[Any], *, integrated: bool, alive: bool) -> dict[str, Reading[float]]:
        """The rates by field, from the values of `COUNTER_FIELDS`; the card is asked for what those do not give.

        NVLink is the sum over all links, of the payload. PCIe is the difference of two counts where the counter is
        sure not to have wrapped, else what went over the link in 20 ms of the last two seconds; `read_from` says which.
        A throughput of zero is believed of a card that is `alive`.
        """
        *nvlink, pcie_sent, pcie_received = counts
        sent, received = (
            meter.rate(_bytes(count, _BYTES_PER_KIB)) for meter, count in zip(self._nvlink, nvlink, strict=True)
        )
        pcie = self._pcie_rates(device, (pcie_sent, pcie_received), integrated, alive)
        return {
            "nvlink_sent_bytes_per_s": sent,
            "nvlink_received_bytes_per_s": received,
            "pcie_sent_bytes_per_s": pcie[_SENT],
            "pcie_received_bytes_per_s": pcie[_RECEIVED],
        }

    def _pcie_rates(
        self, device: Device, counts: tuple[Any, Any], integrated: bool, alive: bool
    ) -> tuple[Reading[float], Reading[float]]:
        if integrated:
            none: Reading[float] = Reading.missing(Absence.NOT_SUPPORTED, BYTES_PER_SECOND)
            return none, none
        readings = [_bytes(count, 1) for count in counts]
        by_count = [meter.rate(reading) for meter, reading in zip(self._pcie, readings, strict=True)]
        self._pcie_is_wide = self._pcie_is_wide or any((r.value or 0) >= _PROVES_A_WIDE_COUNTER for r in readings)
        if self._pcie_is_wide and all(reading.value is not None for reading in readings):
            sent, received = (Reading(r.value, r.unit, r.absence, "PCIe byte counters") for r in by_count)
        else:
            sent, received = (
                _throughput(kilobytes_per_s, alive) for kilobytes_per_s in self._throughput_lately(device)
            )
        return sent, received

    def _throughput_lately(self, device: Device) -> tuple[Any, Any]:
        now = self._clock()
        if self._throughput is None or now - self._throughput_at >= THROUGHPUT_EVERY_S:
            self._throughput = (
                device.ask("nvmlDeviceGetPcieThroughput", _SENT),
                device.ask("nvmlDeviceGetPcieThroughput", _RECEIVED),
            )
            self._throughput_at = now
        return self._throughput


def _bytes(count: Any, bytes_each: int) -> Reading[int]:
    counted = whole(count, BYTES, ceiling=COUNTER_CEILING)
    return Reading(None if counted.value is None else counted.value * bytes_each, BYTES, counted.absence)


def _throughput(kilobytes_per_s: Any, alive: bool) -> Reading[float]:
    ceiling = int(PCIE_CEILING_BYTES_PER_S / _BYTES_PER_KB)
    rate = whole(kilobytes_per_s, BYTES_PER_SECOND, ceiling=ceiling, zero_is_absent=not alive)
    value = None if rate.value is None else float(rate.value * _BYTES_PER_KB)
    return Reading(value, BYTES_PER_SECOND, rate.absence, "nvmlDeviceGetPcieThroughput")
