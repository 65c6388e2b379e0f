"""A scenario under the load that a server has now: so many requests, of such lengths."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.calc.deployment_limits import MOST_CONCURRENT
from app.calc.notation import significant
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
    workload, asked = workload_of(server), scenario.workload
    taken, kept = [], []
    running = server.running.value
    if "concurrency" in workload:
        taken.append(f"{workload['concurrency']:,} running")
    elif running is None:
        kept.append("as many as fit at a time" if asked.concurrency is None else f"{asked.concurrency:,} at a time")
    for field, words in (("prompt_tokens", "of prompt"), ("output_tokens", "of answer")):
        told = field in workload
        (taken if told else kept).append(f"{_tokens(workload[field] if told else getattr(asked, field))} {words}")
    if "prefix_hit_rate" in workload:
        taken.append(_found(workload["prefix_hit_rate"]))
    elif asked.prefix_hit_rate:
        kept.append(_found(asked.prefix_hit_rate))
    return Loaded(under_load(scenario, workload), tuple(taken), tuple(kept), is_idle(server))


def under_load(scenario: Scenario, workload: Mapping[str, Any]) -> Scenario:
    """`scenario` with these fields of its workload; what was asked of lengths gives way to those that are measured.

    Raises:
        ValidationError: no scenario has such a load.
    """
    asked, changed = scenario.workload, dict(workload)
    prompt, output = (changed.get(field, getattr(asked, field)) for field in ("prompt_tokens", "output_tokens"))
    changed["shared_prefix_tokens"] = min(asked.shared_prefix_tokens, prompt)
    if asked.longest_answer is not None:
        changed["longest_answer"] = max(asked.longest_answer, output)
    return Scenario.model_validate(merge(scenario.document(), {"workload": changed}))


def is_idle(server: ServerReadings) -> bool:
    """Whether the server says that no request runs."""
    return server.running.value is not None and server.running.value < 0.5


def workload_of(server: ServerReadings) -> dict[str, Any]:
    """The fields of a workload that the server tells; a share to the tenth of a percent, as it is written out."""
    workload: dict[str, Any] = {}
    running, hits = server.running.value, server.prefix_hit_rate.value
    if running is not None and running >= 0.5:
        workload["concurrency"] = min(MOST_CONCURRENT, max(1, round(running)))
    for reading, field in (
        (server.mean_prompt_tokens, "prompt_tokens"),
        (server.mean_output_tokens, "output_tokens"),
    ):
        if reading.value is not None and 0.5 <= reading.value <= MOST_TOKENS:
            workload[field] = max(1, round(reading.value))
    if hits is not None and 0 <= hits <= 1:
        workload["prefix_hit_rate"] = round(hits, 3)
    return workload


def _tokens(count: int) -> str:
    return f"{count:,} {'token' if count == 1 else 'tokens'}"


def _found(share: float) -> str:
    return f"{significant(100 * share, 3)} % of the prompts found in the cache"
