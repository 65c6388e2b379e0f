"""How much of a machine software reaches: shares of its peaks, and the times that no peak shortens."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from app.calc.broadcast import Quantity, minimum
from app.calc.dtypes import Dtype


class Format(StrEnum):
    """What decides which kernel multiplies: the stored width, and for 4 bits whether the arithmetic is narrow too."""

    WIDE = "16-bit"
    EIGHT = "8-bit"
    FOUR = "4-bit"
    FOUR_UNPACKED = "4-bit unpacked"


def format_of(stored: Dtype, compute: Dtype) -> Format:
    """The kernel of matrices stored in one type and multiplied in another."""
    if stored.bits > Dtype.FP8.bits:
        return Format.WIDE
    if stored.bits == Dtype.FP8.bits:
        return Format.EIGHT
    return Format.FOUR if compute.bits <= Dtype.FP8.bits else Format.FOUR_UNPACKED


class Kind(StrEnum):
    """Operators that are timed alike."""

    MATRIX = "matrix"
    HEAD = "head"
    EXPERTS = "experts"
    ATTENTION = "attention"
    STATE = "state"
    LIGHT = "light"
    ALL_REDUCE = "all_reduce"
    EXCHANGE = "exchange"


@dataclass(frozen=True, slots=True)
class Reach:
    """Shares of the peak rate and of the bandwidth (both at most 1), and seconds that each call takes beside them."""

    rate: Quantity
    bandwidth: Quantity
    call_s: Quantity

    def slower(self, factor: Quantity) -> "Reach":
        """So many times slower, and never beyond a peak."""
        return Reach(_slower(self.rate, factor), _slower(self.bandwidth, factor), self.call_s * factor)


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Everything that is fitted, for one accelerator, engine and kind of model.

    `attention_half_tokens` is the prompt at which prefill attention runs at half its rate; `prefill_half_tokens` the
    chunk at which the matrices do. `link_share` is of the link's one-way rate, between two GPUs; `…_power` say how it
    falls, and how the latency of a collective grows, with their number. `step_s` is the host's part of each step,
    `sequence_s` that of each sequence in it, `request_s` that of each request. `wait_share` and `wait_power` say which
    part of the others' prefills is met before the first token (`expected.passes`). `of_prefill` holds while
    prompts are prefilled, where that is another; None where one efficiency holds throughout.
    """

    matrices: Mapping[Format, Reach]
    experts: Mapping[Format, Reach]
    attention: Reach
    state: Reach
    light: Reach
    attention_half_tokens: Quantity
    prefill_half_tokens: Quantity
    link_share: Quantity
    link_share_power: Quantity
    link_latency_s: Quantity
    link_latency_power: Quantity
    exchange_latency_s: Quantity
    step_s: Quantity
    sequence_s: Quantity
    request_s: Quantity
    wait_share: Quantity
    wait_power: Quantity
    of_prefill: "Efficiency | None" = None

    @property
    def in_prefill(self) -> "Efficiency":
        """What is reached while prompts are prefilled."""
        return self if self.of_prefill is None else self.of_prefill

    def slower(self, factor: Quantity) -> "Efficiency":
        """The same machine under software that is so many times slower: shares of peaks smaller, never above 1, and
        calls, latencies and the host longer. Where half of a rate is reached, and who waits for whom, stay.
        """
        return replace(
            self,
            matrices=MappingProxyType({key: reach.slower(factor) for key, reach in self.matrices.items()}),
            experts=MappingProxyType({key: reach.slower(factor) for key, reach in self.experts.items()}),
            attention=self.attention.slower(factor),
            state=self.state.slower(factor),
            light=self.light.slower(factor),
            link_share=_slower(self.link_share, factor),
            link_latency_s=self.link_latency_s * factor,
            exchange_latency_s=self.exchange_latency_s * factor,
            step_s=self.step_s * factor,
            sequence_s=self.sequence_s * factor,
            request_s=self.request_s * factor,
        )

    def between(self, gpus: int) -> Reach:
        """What a collective of so many GPUs reaches of the link, and its latency."""
        share = self.link_share * (2 / gpus) ** self.link_share_power
        return Reach(1.0, share, self.link_latency_s * (gpus / 2) ** self.link_latency_power)


def _slower(share: Quantity, factor: Quantity) -> Quantity:
    return minimum(1.0, share / factor)
