"""A thing that a reader must know beside the numbers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Notice:
    """`code` is for programs and never changes its meaning; `message` is for people."""

    code: str
    message: str
