"""Prefill and decode on GPUs of their own: the prefill pool, and the way of a cache from it to the decode pool.

Source: Zhong et al., "DistServe", OSDI 2024; Patel et al., "Splitwise", ISCA 2024.
"""

from dataclasses import dataclass
from math import inf

from app.calc.accelerator import Accelerator
from app.calc.broadcast import Quantity
from app.calc.model.split import Split


@dataclass(frozen=True, slots=True)
class PrefillPool:
    """`instances` of the model that only prefill, each `split` over GPUs of `accelerator`.

    A finished cache goes to the decode pool over `link_name`, at `link_bytes_per_s` in one direction from each GPU;
    `overlaps` says that the cache of a layer is on its way while the next layer is computed.
    """

    accelerator: Accelerator
    split: Split
    instances: int
    link_name: str
    link_bytes_per_s: float
    overlaps: bool = True

    @property
    def gpus(self) -> int:
        """All GPUs of the pool."""
        return self.instances * self.split.gpus

    @property
    def senders(self) -> int:
        """GPUs of an instance that each send their own part of a cache at a time."""
        return self.split.tensor


def transfer_s(cache_bytes: Quantity, link_bytes_per_s: Quantity, senders: int) -> Quantity:
    """Seconds of a prompt's cache over the link: bytes ÷ (GPUs that send × rate).

    Worked number: 4,096 tokens of Llama-3.1-70B are 1.342 GB; from 8 GPUs over 50 GB/s each 3.36 ms.
    """
    return cache_bytes / (senders * link_bytes_per_s)


def wait_for_link_s(transfer: float, prefill: float, layers: int, *, overlaps: bool) -> float:
    """Seconds between the end of a prefill and the first decode step, for the cache that is still on its way.

    With overlap the first layer is ready after prefill ÷ layers and the last one leaves no earlier than the prefill
    ends: max(transfer ÷ L, transfer − prefill · (L − 1) ÷ L). Worked number: 40 ms of prefill and 8 ms of transfer in
    32 layers leave 0.25 ms; 8 ms of prefill and 40 ms of transfer leave 32.25 ms.
    """
    if not overlaps:
        return transfer
    return max(transfer / layers, transfer - prefill * (layers - 1) / layers)


@dataclass(frozen=True, slots=True)
class PoolRates:
    """Requests a second that a prefill pool can take on, and that its links can carry away."""

    prefill_per_s: float
    link_per_s: float

    @property
    def per_s(self) -> float:
        """The smaller of the two."""
        return min(self.prefill_per_s, self.link_per_s)


def pool_rates(pool: PrefillPool, prompt_s: float, cache_bytes: float) -> PoolRates:
    """What a pool gives in steady state.

    Args:
        pool: the GPUs that prefill.
        prompt_s: seconds of one data-parallel rank for one more prompt, all stages of a pipeline at work.
        cache_bytes: what goes over the link for it, all tensor ranks together.

    Worked number: 2 instances of one rank that take 40 ms a prompt give 50 requests a second; 8 senders of 50 GB/s
    each carry 1.342 GB caches of 2 instances away at 596 a second.
    """
    ranks = pool.instances * pool.split.data
    return PoolRates(
        ranks / prompt_s, ranks * pool.senders * pool.link_bytes_per_s / cache_bytes if cache_bytes else inf
    )
