"""All kinds of servers that are known, and which of them a scrape is of."""

from functools import cache
from pathlib import Path
from types import MappingProxyType

from app.probes.servers.adapter import Adapter
from app.probes.servers.adapter_file import AdapterError, load_adapter
from app.probes.servers.exposition import Exposition
from app.probes.servers.tally import STARTED_AT

DATA = Path(__file__).resolve().parent / "data"

ORDER = (
    # Engines before what stands in front of them: a worker of Dynamo and a Triton backend pass their engine's on.
    "vllm",
    "sglang",
    "tensorrt-llm",
    "llama.cpp",
    "tgi",
    "triton",
    "dynamo",
    "endpoint-picker",
)
"""The kinds in the order in which they are tried. Those without prefixes are recognised last."""


@cache
def known_adapters(folder: Path = DATA) -> tuple[Adapter, ...]:
    """Every adapter, in the order in which they are tried.

    Raises:
        AdapterError: a data file is not to be trusted, is missing, or is of no known kind.
    """
    adapters = {adapter.kind: adapter for adapter in map(load_adapter, sorted(folder.glob("*.toml")))}
    if set(adapters) != set(ORDER):
        raise AdapterError(f"the data files are of {sorted(adapters)}, not of {sorted(ORDER)}")
    return tuple(adapters[kind] for kind in ORDER)


def adapter_of(kind: str) -> Adapter:
    """The adapter of a kind.

    Raises:
        KeyError: there is none.
    """
    return MappingProxyType({adapter.kind: adapter for adapter in known_adapters()})[kind]


@cache
def wanted_names() -> frozenset[str]:
    """The names of all samples that any adapter reads."""
    return frozenset(name for adapter in known_adapters() for name in adapter.wanted()) | {STARTED_AT}


def recognise(exposition: Exposition) -> Adapter | None:
    """The adapter for a scrape, by its names; None for a server that is not known."""
    for adapter in known_adapters():
        if adapter.prefixes and any(name.startswith(adapter.prefixes) for name in exposition.names):
            return adapter
    for adapter in known_adapters():
        if adapter.marks and exposition.names >= set(adapter.marks):
            return adapter
    return None
