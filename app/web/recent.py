"""A memory of recent answers: bounded in number, in bytes and in time."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Entry(NamedTuple, Generic[V]):
    value: V
    size_bytes: int
    ends_at: float


class Recent(Generic[K, V]):
    """Values by key until their time is up, or until newer ones need the room: the least recently used goes first.

    `clock` (seconds, monotonic) tells the time. For one event loop.
    """

    def __init__(self, most_entries: int, most_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_entries, self._most_bytes, self._clock = most_entries, most_bytes, clock
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._size_bytes = 0

    def __len__(self) -> int:
        """How many values are held, those included whose time is up and that nobody has asked for since."""
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        """The size of all values together, as they were put."""
        return self._size_bytes

    def get(self, key: K) -> V | None:
        """The value put under `key`, or None when there is none that is recent enough."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if self._clock() >= entry.ends_at:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry.value

    def put(self, key: K, value: V, size_bytes: int, lifetime_s: float) -> None:
        """Hold `value` for `lifetime_s`, in the place of an older one. One that is too large by itself is not held."""
        self._drop(key)
        if lifetime_s <= 0 or size_bytes > self._most_bytes:
            return
        self._entries[key] = _Entry(value, size_bytes, self._clock() + lifetime_s)
        self._size_bytes += size_bytes
        while len(self._entries) > self._most_entries or self._size_bytes > self._most_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: K) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size_bytes -= entry.size_bytes
