"""A scenario under the load that a server has now: so many requests, of such lengths."""

from dataclasses import dataclass
from typing import Any

from app.calc.deployment_limits import MOST_CONCURRENT
from app.launch.carried import merge
from app.probes.servers.readings import ServerReadings
from app.scenario import Scenario

MOST_TOKENS = 10**8


@dataclass(frozen=True, slots=True)
class Loaded:
    """`scenario` has the server's load where it tells one; `taken` says in words what came from the server, `kept` what
    it did not tell and stays as it was asked. `is_idle` where no request runs: then nothing can be compared.
    """

    scenario: Scenario
    taken: tuple[str, ...]
    kept: tuple[str, ...]
    is_idle: bool


def as_loaded(scenario: Scenario, server: ServerReadings) -> Loaded:
    """`scenario` with the requests that run on `server`, and the mean lengths of those that finished of late."""
    workload: dict[str, Any] = {}
    taken, kept = [], []
    running = server.running.value
    if running is None:
        kept.append(f"{scenario.workload.concurrency or 'as many as fit'} at a time")
    elif running >= 0.5:
        workload["concurrency"] = min(MOST_CONCURRENT, max(1, round(running)))
        taken.append(f"{workload['concurrency']:,} running")
    for reading, field, words in (
        (server.mean_prompt_tokens, "prompt_tokens", "of prompt"),
        (server.mean_output_tokens, "output_tokens", "of answer"),
    ):
        if reading.value is not None and 0.5 <= reading.value <= MOST_TOKENS:
            workload[field] = max(1, round(reading.value))
            taken.append(f"{workload[field]:,} tokens {words}")
        else:
            kept.append(f"{getattr(scenario.workload, field):,} tokens {words}")
    hits = server.prefix_hit_rate.value
    if hits is not None and 0 <= hits <= 1:
        workload["prefix_hit_rate"] = hits
        taken.append(f"{100 * hits:.0f} % of the prompts found in the cache")
    document = merge(scenario.document(), {"workload": workload})
    return Loaded(
        Scenario.model_validate(document),
        tuple(taken),
        tuple(kept),
        is_idle=running is not None and running < 0.5,
    )
