"""Which accelerator of the catalog a probed card is, and whether both agree about its memory.

From what was probed to a scenario: the cards, the server's model and settings, as far as they are certain.

A scenario under the load that a server has now: so many requests, of such lengths.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.calc.memory.engines.parts import MOST_CONCURRENT
from app.calc.quantity import GB, MIB, significant
from app.catalog.catalog import Catalog
from app.catalog.match import known_accelerator
from app.engine_io.launch.carried import merge
from app.engine_io.launch.invocation import Named, read_name
from app.machine.probes.accelerator import CardReadings
from app.machine.probes.servers.readings import ServerReadings
from app.machine.probes.snapshot import ProbeSnapshot
from app.scenario.query import FIELDS
from app.scenario.scenario import Scenario

MOST_BANDWIDTH_GAP = 0.05
"""Beyond this relative gap the bandwidth that a card derives and the catalog's figure are worth a word."""


def matched_accelerator(card: CardReadings, catalog: Catalog) -> str | None:
    """The id of the one accelerator that the card certainly is, or None."""
    name = card.name.value
    return None if name is None else known_accelerator(name, card.memory_total_bytes.value, catalog)


def bandwidth_gap(card: CardReadings, accelerator_id: str | None, catalog: Catalog) -> tuple[float, float] | None:
    """What clock and bus width give, and what the catalog states, both in B/s; None while they agree within 5 %."""
    derived = card.peak_bandwidth_bytes_per_s.value
    if accelerator_id is None or not derived:
        return None
    stated = catalog.devices[accelerator_id].bandwidth_bytes_per_s
    return None if abs(derived / stated - 1) <= MOST_BANDWIDTH_GAP else (derived, stated)


_ENGINES: Mapping[str, str] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt-llm": "tensorrt-llm",
    "triton": "tensorrt-llm",
    "llama.cpp": "llama.cpp",
    "endpoint-picker": "llm-d",
}
_CACHES: Mapping[str, str] = {
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "fp16": "fp16",
    "fp8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "int8": "int8",
}
# The names under which servers tell their settings, and the fields of the scenario that these are.
_WHOLE_SETTINGS: Mapping[str, tuple[str, str]] = {
    "max_model_len": ("engine", "max_model_len"),
    "context_len": ("engine", "max_model_len"),
    "max_num_seqs": ("engine", "max_num_seqs"),
    "max_num_batched_tokens": ("engine", "max_batched_tokens"),
    "block_size": ("engine", "block_size"),
    "page_size": ("engine", "block_size"),
    "tokens_per_block": ("engine", "block_size"),
    "tensor_parallel_size": ("parallelism", "tensor"),
    "pipeline_parallel_size": ("parallelism", "pipeline"),
    "data_parallel_size": ("parallelism", "data"),
}
_COUNT = re.compile(r"[1-9][0-9]{0,8}")
_SHARE = re.compile(r"[01]?\.[0-9]{1,20}|1")


@dataclass(frozen=True, slots=True)
class Machine:
    """What the probes say of this machine, as parts of a scenario. `document` has what was read, `notes` what was taken
    for granted, `missing` what a scenario needs besides and no probe told ("model", "hardware").
    """

    document: Mapping[str, Any]
    notes: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether a scenario can be made of it."""
        return not self.missing


def machine_of(snapshots: Sequence[ProbeSnapshot], catalog: Catalog) -> Machine:
    """The scenario that the cards and the first server of a round amount to."""
    cards = [card for snapshot in snapshots for card in snapshot.cards if card.fault is None]
    server = next((snapshot.server for snapshot in snapshots if snapshot.server is not None), None)
    document: dict[str, Any] = {} if server is None else _served(server, catalog)
    notes: list[str] = []
    kind, count = _cards(cards, catalog)
    if kind is not None:
        document["hardware"] = {"id": kind}
        if server is not None and count > 1 and "parallelism" not in document:
            document["parallelism"] = {"tensor": count}
            notes.append(f"The server does not say how it is split: it is taken to use all {count} cards for one copy.")
        if count < len(cards):
            notes.append(f"Of {len(cards)} cards {count} are of one kind that the catalog knows; they were taken.")
    missing = [part for part in ("model", "hardware") if not document.get(part)]
    return Machine(document, tuple(notes), tuple(missing))


def _cards(cards: Sequence[CardReadings], catalog: Catalog) -> tuple[str | None, int]:
    """The kind of card that there is most of, and how many. One that the catalog does not know has no rates."""
    kinds = Counter(kind for card in cards if (kind := matched_accelerator(card, catalog)) is not None)
    return kinds.most_common(1)[0] if kinds else (None, 0)


def served_model(server: ServerReadings, catalog: Catalog) -> str | None:
    """The id of the catalog's model that a server says it serves; None where it says none, or one that is not known."""
    return _named(server.model_name.value, catalog).model if server.model_name.value else None


def told_items(machine: Machine) -> list[tuple[str, str]]:
    """What was read, as items of a query, in their order: all that is known where it is too little for a scenario."""
    found = ((field.name, _at(machine.document, field.path)) for field in FIELDS)
    return [(name, str(value)) for name, value in found if value is not None]


def _at(document: Mapping[str, Any], path: str) -> Any:
    value: Any = document
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def custom_items(card: CardReadings, model: str, hardware: str) -> list[tuple[str, str]]:
    """The workbench's form with what was read of a card that the catalog does not know; it asks for the rates."""
    total, bandwidth = card.memory_total_bytes.value, card.peak_bandwidth_bytes_per_s.value
    items = [("model", model), ("hw", hardware), ("hw_name", card.name.value or "My card")]
    if total:
        items += [("hw_mem", f"{total / GB:.3f}"), ("hw_mib", str(total // MIB))]
    if bandwidth:
        items.append(("hw_bw", f"{bandwidth / GB:.6g}"))
    return items


def _served(server: ServerReadings, catalog: Catalog) -> dict[str, Any]:
    """Model, format, engine and settings, as the server tells them."""
    document: dict[str, Any] = {}
    if engine := _ENGINES.get(server.kind):
        document = merge(document, {"engine": {"id": engine}})
    if server.model_name.value:
        named = _named(server.model_name.value, catalog)
        if named.model is not None:
            document["model"] = {"id": named.model}
            if named.weights is not None and not named.mixed:
                document["precision"] = {"weights": named.weights}
    for name, (part, field) in _WHOLE_SETTINGS.items():
        text = server.settings.get(name, "")
        if _COUNT.fullmatch(text):
            document = merge(document, {part: {field: int(text)}})
    if cache := _CACHES.get(server.settings.get("cache_dtype", "").lower().removeprefix("torch.")):
        document = merge(document, {"precision": {"kv_cache": cache}})
    share = _share(server.settings.get("gpu_memory_utilization", ""))
    if share is not None:
        document = merge(document, {"engine": {"memory_utilization": share}})
    return document


@lru_cache(maxsize=256)
def _named(text: str, catalog: Catalog) -> Named:
    """Looked up once and not in every round; a catalog is one object, compared by identity."""
    return read_name(text, catalog)


def _share(text: str) -> float | None:
    value = float(text) if _SHARE.fullmatch(text) else 0.0
    return value if 0.01 <= value <= 1 else None


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
