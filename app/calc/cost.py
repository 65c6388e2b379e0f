"""What a token costs in money and energy, at the throughput that is expected (at its ceiling where nothing is)."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.calc.accelerator import Accelerator
from app.calc.broadcast import Quantity

SECONDS_PER_HOUR = 3600
TOKENS_PER_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Cost:
    """None where the catalog knows no price or no power. Energy takes the card at its rated power (TDP)."""

    usd_per_million_output_tokens: float | None
    usd_per_hour: float | None
    joules_per_output_token: float | None


def usd_per_million_tokens(usd_per_hour: Quantity, tokens_per_s: Quantity) -> Quantity:
    """Price of a million tokens: $/h ÷ (tokens/s × 3,600) × 10^6. Worked number: $3.60/h at 1,000 tokens/s is $1.00."""
    return usd_per_hour / (tokens_per_s * SECONDS_PER_HOUR) * TOKENS_PER_MILLION


def joules_per_token(power_w: Quantity, tokens_per_s: Quantity) -> Quantity:
    """Energy of one token: W ÷ tokens/s. Worked number: 700 W at 1,000 tokens/s is 0.7 J."""
    return power_w / tokens_per_s


def cost(cards: Sequence[tuple[Accelerator, int]], tokens_per_s: float) -> Cost | None:
    """Cost of `tokens_per_s` output tokens a second on so many of each card; None where neither price nor power is
    known, and neither of the two where it is unknown of any card.
    """
    price = _sum([(accelerator.price_usd_per_hour, gpus) for accelerator, gpus in cards])
    power = _sum([(accelerator.tdp_w, gpus) for accelerator, gpus in cards])
    if price is None and power is None:
        return None
    return Cost(
        usd_per_million_output_tokens=None if price is None else float(usd_per_million_tokens(price, tokens_per_s)),
        usd_per_hour=price,
        joules_per_output_token=None if power is None else float(joules_per_token(power, tokens_per_s)),
    )


def _sum(parts: Sequence[tuple[float | None, int]]) -> float | None:
    total = 0.0
    for each, gpus in parts:
        if each is None:
            return None
        total += each * gpus
    return total
