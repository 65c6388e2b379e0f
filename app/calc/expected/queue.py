"""What requests do to each other: prefills share the machine with decoding, and time is conserved.

In a closed loop of B requests every one stays for as long as all B of them need to be prefilled once and to decode:
T = n·t_step + t_alone + t_request + (B − 1)·t_marginal. It is linear in B, so no iteration is needed. The others'
prefills are met either before the first token (TTFT) or between tokens (TPOT): what the one has the other has not.
Little's law then gives B·n ÷ T tokens a second.
"""

from dataclasses import dataclass, replace

from app.calc.broadcast import Quantity, maximum, minimum


@dataclass(frozen=True, slots=True)
class Stay:
    """Seconds of a request among others: TTFT + n × TPOT = `residency_s`, exactly.

    `interference_s` is the part of a TPOT that others' prefills take; `wait_s` the part of the TTFT.
    """

    ttft_s: Quantity
    tpot_s: Quantity
    interference_s: Quantity
    wait_s: Quantity
    residency_s: Quantity

    def behind(self, requests: Quantity, rate_per_s: float) -> "Stay":
        """The same where all of so many `requests` come through a pool that gives no more than a rate: by Little's law
        none stays for less than requests ÷ rate, and what is missing passes before the first token.
        """
        missing = maximum(0.0, requests / rate_per_s - self.residency_s)
        return replace(
            self,
            ttft_s=self.ttft_s + missing,
            wait_s=self.wait_s + missing,
            residency_s=self.residency_s + missing,
        )


def waiting_share(others: Quantity, share: Quantity, power: Quantity) -> Quantity:
    """Part of the others' prefills that is met before the first token: min(1, share × others^(power − 1)).

    A power of 1 is a wave that is prefilled together; below it arrivals spread out as the crowd grows.
    """
    return minimum(1.0, share * maximum(1.0, others) ** (minimum(1.0, power) - 1.0))


def stay(
    batch: Quantity,
    output_tokens: Quantity,
    step_s: Quantity,
    alone_s: Quantity,
    request_s: Quantity,
    marginal_s: Quantity,
    share: Quantity,
    power: Quantity,
) -> Stay:
    """The stay of one of `batch` requests on a rank.

    Args:
        batch: requests at a time, of one data-parallel rank.
        output_tokens: of an answer.
        step_s: one decode step of them all.
        alone_s: a prefill on an idle machine.
        request_s: the host's part of a request.
        marginal_s: what one more prefill adds; a stage's part of it where there is a pipeline.
        share: of the others' prefills before the first token, for one other.
        power: how that part grows with the crowd.

    Worked number: 9 requests of 100 tokens, a step of 10 ms, prefills of 80 ms and 50 ms more each, a quarter met
    first: TTFT 0.18 s, TPOT 13 ms, residency 1.48 s.
    """
    others = maximum(0.0, batch - 1.0)
    first = waiting_share(others, share, power)
    met = others * marginal_s
    wait, between = first * met, (1.0 - first) * met / output_tokens
    ttft, tpot = alone_s + request_s + wait, step_s + between
    return Stay(ttft, tpot, between, wait, ttft + output_tokens * tpot)
