"""A card that does not exist: it has a clock, memory and rates, and does no arithmetic. The fake libraries share it.

Every pass takes its bytes over the bandwidth, or its FLOP over the rate. Three passes in four take a tenth longer, so
that the best and the median differ, and the very first of each kind takes five times as long, as a cold kernel does.
"""

import json
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import Any

SLOWER = 1.1
COLD = 5.0
EVERY = 4


@dataclass
class Card:
    """What TORCH_FAKE_CARD says of it, over these defaults."""

    name: str = "NVIDIA H100 80GB HBM3"
    total_bytes: int = 85_520_809_984
    held_by_others_bytes: int = 500_000_000
    cache_bytes: int = 52_428_800
    capability: tuple[int, int] = (9, 0)
    count: int = 1
    bandwidth_bytes_per_s: float = 3.0e12
    flops_per_s: dict[str, float] = field(
        default_factory=lambda: {
            "bf16": 8.0e14,
            "fp16": 7.0e14,
            "fp8": 1.4e15,
            "int8": 1.2e15,
            "tf32": 4e14,
            "fp32": 5e13,
        }
    )
    hip: bool = False
    behaviour: str = ""
    clock_s: float = 0.0
    limit_bytes: int | None = None
    taken_bytes: int = 0
    passes: dict[str, int] = field(default_factory=dict)
    environment: tuple[str, ...] = ()

    def spend(self, kind: str, seconds: float) -> None:
        """Let a pass of `kind` take its time."""
        number = self.passes[kind] = self.passes.get(kind, 0) + 1
        factor = COLD if number == 1 else 1.0 if number % EVERY == 0 else SLOWER
        self.clock_s += seconds * factor

    def multiply(self, kind: str, size: int) -> None:
        """Let a product take its time."""
        if kind not in self.flops_per_s:
            raise RuntimeError(f"no {kind} on this card")
        self.spend(f"{kind} {size}", 2 * size**3 / self.flops_per_s[kind])

    def move(self, kind: str, moved_bytes: int) -> None:
        """Let a stream take its time."""
        self.spend(kind, moved_bytes / self.bandwidth_bytes_per_s)

    @property
    def free_bytes(self) -> int:
        return self.total_bytes - self.held_by_others_bytes - self.taken_bytes

    def take(self, taken_bytes: int) -> bool:
        """Whether the memory can be had; the caller gives it back."""
        limit = self.free_bytes if self.limit_bytes is None else self.limit_bytes - self.taken_bytes
        if taken_bytes > limit:
            return False
        self.taken_bytes += taken_bytes
        return True

    def misbehave(self) -> None:
        """What a library does when it is first used, if it is to do harm."""
        match self.behaviour:
            case "take a while":
                time.sleep(0.3)
            case "hang":
                time.sleep(60)
            case "print":
                print("a library says hello on the standard output")
                os.write(1, b"and so does its C code\n")
            case "hog":
                bytearray(2**35)
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "raise":
                raise RuntimeError("the secret cause, in /a/folder/of/mine")
            case "tell":
                print(json.dumps({"nice": os.nice(0), "names": sorted(os.environ)}), file=sys.stderr)


def _told() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(os.environ.get("TORCH_FAKE_CARD", "{}"))
    return {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}


CARD = Card(**_told())
