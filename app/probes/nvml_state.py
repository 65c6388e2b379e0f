"""What is kept of each card from one snapshot to the next: counters and samples, by the card's UUID."""

from collections.abc import Callable, Collection

from app.probes.nvml import Nvml
from app.probes.nvml_activity import ActivityMeter
from app.probes.nvml_links import LinkMeters

INSTANCE_LIMIT = 64
"""More MIG instances than any card can be split into."""


class CardState:
    """The meters of one card, and those of its MIG instances by their UUIDs."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._instances: dict[str, ActivityMeter] = {}
        self.links = LinkMeters(clock)
        self.activity = ActivityMeter(clock)

    def instance(self, uuid: str) -> ActivityMeter:
        """The meter of one MIG instance."""
        return self._instances.setdefault(uuid, ActivityMeter(self._clock))

    def keep_instances(self, uuids: Collection[str], nvml: Nvml) -> None:
        """Forgets the instances that are gone."""
        for uuid in self._instances.keys() - set(uuids):
            self._instances.pop(uuid).release(nvml)

    def release(self, nvml: Nvml) -> None:
        """Gives the driver back what it holds for this card."""
        self.activity.release(nvml)
        self.keep_instances((), nvml)


class CardStates:
    """The states of all cards that are there; a card that goes takes its own with it."""

    def __init__(self, nvml: Nvml, clock: Callable[[], float]) -> None:
        self._nvml, self._clock = nvml, clock
        self._states: dict[str, CardState] = {}

    def __len__(self) -> int:
        """How many cards are remembered."""
        return len(self._states)

    def of(self, uuid: str) -> CardState:
        """The state of one card, new for a card that was not there."""
        return self._states.setdefault(uuid, CardState(self._clock))

    def keep_only(self, uuids: Collection[str]) -> None:
        """Forgets the cards that are gone."""
        for uuid in self._states.keys() - set(uuids):
            self._states.pop(uuid).release(self._nvml)
