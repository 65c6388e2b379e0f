"""What a library has to offer for measuring with it, and how it says that it has not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from app.calc.dtypes import Dtype
from app.microbench.outcome import Stream

Work = Callable[[], object]
"""One pass, queued on the card; what it works on lives as long as it does."""


class NoAcceleratorError(Exception):
    """The library is there, and no accelerator that it can use."""


class NoSuchCardError(Exception):
    """The library sees fewer cards: `count` of them."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(f"{count} cards")


class NotOfferedError(Exception):
    """The library, or the card, does not do arithmetic in this number format."""


class OutOfCardMemoryError(Exception):
    """The card has not the memory, or not within the limit."""


@dataclass(frozen=True, slots=True)
class SeenCard:
    """The card as the library sees it; `cache_bytes` is its last cache, None where the library does not tell.

    `free_bytes` is what all programs together have left of `total_bytes`.
    """

    name: str
    total_bytes: int
    free_bytes: int
    cache_bytes: int | None


class Kernels(Protocol):
    """One library on one card. Not for several threads."""

    @property
    def library(self) -> str:
        """Its name."""

    def versions(self) -> dict[str, str]:
        """Its version and that of what it was built for."""

    def card(self) -> SeenCard:
        """The card now."""

    def limit_memory(self, most_bytes: int) -> None:
        """Lets the library take no more of the card's memory than this, whatever it is asked for."""

    def streams(self, elements: int) -> Mapping[Stream, Work]:
        """The passes over three vectors of fp32 elements. Raises OutOfCardMemoryError."""

    def product(self, dtype: Dtype, size: int) -> Work:
        """The product of two square matrices of random numbers, tried once.

        Raises:
            NotOfferedError, OutOfCardMemoryError: it cannot be had.
        """

    def intervals_s(self, work: Work, count: int) -> list[float]:
        """Seconds of each of `count` passes, one behind the other, from event to event on the card."""

    def release(self) -> None:
        """Gives memory back that no work holds any more. Raises what the card has met in the meantime."""
