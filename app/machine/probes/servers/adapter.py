"""What an adapter knows of a server's metrics: which series it selects, for which concept."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

_FORM = re.compile(r"([^\s\[\]{}]+)(?:\{(\w+)=([^{}]*)\})?(?:\[(\w+)\])?")


@dataclass(frozen=True, slots=True)
class Selector:
    """One metric; of it the series with `where` (a label and its value), of these the number in `label`."""

    name: str
    where: tuple[str, str] | None = None
    label: str | None = None

    def shown(self, name: str) -> str:
        """For people, with the `name` under which the metric was met: a label speaks for itself."""
        if self.label is not None:
            return self.label
        return f"{name}{{{'='.join(self.where)}}}" if self.where is not None else name


@dataclass(frozen=True, slots=True)
class Candidate:
    """Selectors that give a value together: those `above` joined by `joint`, divided by those `below` if any."""

    above: tuple[Selector, ...]
    below: tuple[Selector, ...] = ()
    joint: str = ""

    @property
    def selectors(self) -> tuple[Selector, ...]:
        return self.above + self.below

    def shown(self, names: Mapping[Selector, str]) -> str:
        """For people, with the name under which each selector's metric was met."""

        def side(selectors: tuple[Selector, ...]) -> str:
            return f" {self.joint} ".join(each.shown(names[each]) for each in selectors)

        if not self.below:
            return side(self.above)
        above, below = side(self.above), side(self.below)
        if self.joint == "+" and len(self.above) > 1:
            above = f"({above})"
        return f"{above} ÷ {f'({below})' if len(self.below) > 1 else below}"


def parse_selector(text: str) -> Selector:
    """The selector that `text` stands for.

    Raises:
        ValueError: it is of none of the forms.
    """
    if (match := _FORM.fullmatch(text)) is None:
        raise ValueError(f"not a selector: {text!r}")
    name, where, value, label = match.groups()
    return Selector(name, (where, value) if where is not None else None, label)


def parse_candidate(text: str) -> Candidate:
    """The candidate that `text` stands for.

    Raises:
        ValueError: a selector is malformed, or sums and products are mixed.
    """
    above, division, below = text.partition(" ÷ ")
    joints = {joint for joint in "+×" if f" {joint} " in text}
    if len(joints) > 1 or " ÷ " in below:
        raise ValueError(f"a candidate has sums or products, and one division at most: {text!r}")
    joint = joints.pop() if joints else ""

    def side(part: str) -> tuple[Selector, ...]:
        return tuple(parse_selector(each) for each in (part.split(f" {joint} ") if joint else [part]))

    return Candidate(side(above), side(below) if division else (), joint)


class Rule(StrEnum):
    """How the series of a metric become one reading. An instance is an engine, a data-parallel rank or a pool."""

    SUM = "sum"
    """A gauge, summed over the instances."""
    MEAN = "mean"
    """A gauge, averaged over the instances, by `weights` where all have one."""
    RATE = "rate"
    """A counter, per second, summed over the instances."""
    MEAN_RATE = "mean_rate"
    """A counter, per second, averaged over the instances."""
    RATIO = "ratio"
    """The growth of one counter, or sum of counters, by that of another."""
    HISTOGRAM = "histogram"
    """Quantiles and mean of what was observed since the oldest scrape that is kept."""
    AVERAGE = "average"
    """Only the mean of a histogram or summary."""


GAUGES = frozenset({Rule.SUM, Rule.MEAN})
COUNTERS = frozenset({Rule.RATE, Rule.MEAN_RATE, Rule.RATIO})

CONCEPTS: Mapping[str, frozenset[Rule]] = MappingProxyType(
    {
        "running": frozenset({Rule.SUM}),
        "waiting": frozenset({Rule.SUM}),
        "kv_cache_usage": frozenset({Rule.MEAN}),
        "kv_capacity_tokens": frozenset({Rule.SUM}),
        "kv_pool_bytes": frozenset({Rule.MEAN}),
        "prefix_hit_rate": frozenset({Rule.RATIO, Rule.MEAN}),
        "preemptions_per_s": frozenset({Rule.RATE}),
        "requests_per_s": frozenset({Rule.RATE}),
        "prompt_tokens_per_s": frozenset({Rule.RATE}),
        "output_tokens_per_s": frozenset({Rule.RATE}),
        "mean_prompt_tokens": frozenset({Rule.AVERAGE, Rule.RATIO}),
        "mean_output_tokens": frozenset({Rule.AVERAGE, Rule.RATIO}),
        "tokens_per_step": frozenset({Rule.AVERAGE, Rule.RATIO, Rule.SUM}),
        "ttft": frozenset({Rule.HISTOGRAM}),
        "itl": frozenset({Rule.HISTOGRAM}),
        "itl_mean_s": frozenset({Rule.RATIO}),
        "latency": frozenset({Rule.HISTOGRAM}),
        "queue": frozenset({Rule.HISTOGRAM}),
        "flops_per_s": frozenset({Rule.MEAN_RATE}),
        "bytes_per_s": frozenset({Rule.MEAN_RATE}),
    }
)
"""What a data file may speak of, and by which rules. A histogram gives the readings that begin with its name."""

SETTINGS = frozenset(
    [
        "block_size",
        "cache_dtype",
        "context_len",
        "context_parallel_size",
        "dtype",
        "enable_block_reuse",
        "enable_partial_reuse",
        "enable_prefix_caching",
        "expert_parallel_size",
        "free_gpu_memory_fraction",
        "gpu_count",
        "gpu_memory_utilization",
        "kv_cache_max_concurrency",
        "kv_cache_memory_bytes",
        "kv_cache_size_tokens",
        "max_batch_size",
        "max_model_len",
        "max_num_batched_tokens",
        "max_num_seqs",
        "n_ctx",
        "num_gpu_blocks",
        "num_pages",
        "page_size",
        "pipeline_parallel_size",
        "quantization",
        "ready_pods",
        "sliding_window",
        "spec_method",
        "spec_num_tokens",
        "tensor_parallel_size",
        "total_slots",
    ]
)
"""The only labels that are shown as settings: none is a path, a host or the name of a person's file."""


@dataclass(frozen=True, slots=True)
class Concept:
    """Candidates for one reading, in the order in which they are tried; values are multiplied by `scale`."""

    reading: str
    rule: Rule
    candidates: tuple[Candidate, ...]
    weights: tuple[Candidate, ...] = ()
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Adapter:
    """One kind of server.

    `prefixes` are those of its metrics; where it once had none, all `marks` must be met instead. `instances` are the
    labels that tell its engines apart. Series that differ only in the labels of `ranks` say the same thing: one of
    them is read, that of the lowest rank. Where a label of `totals` has the value given there, the series is the total
    of the others, which are then left out. `models` are the labels that may name the model, the best first.
    """

    kind: str
    prefixes: tuple[str, ...]
    marks: tuple[str, ...]
    instances: tuple[str, ...]
    ranks: tuple[str, ...]
    totals: Mapping[str, str]
    models: tuple[str, ...]
    concepts: tuple[Concept, ...]
    labels: Mapping[str, tuple[str, ...]]
    """Labels shown as settings, by the metric that has them."""
    gauges: Mapping[str, tuple[Candidate, ...]]
    """Gauges shown as settings, by the setting."""
    versions: tuple[Selector, ...]
    """Labels that hold the version of the engine."""

    def counters(self) -> Iterator[Selector]:
        """Every counter that a concept reads."""
        for concept in self.concepts:
            if concept.rule in COUNTERS:
                yield from (each for candidate in concept.candidates for each in candidate.selectors)

    def histograms(self) -> Iterator[Selector]:
        """Every histogram that a concept reads, if only its mean."""
        for concept in self.concepts:
            if concept.rule in (Rule.HISTOGRAM, Rule.AVERAGE):
                yield from (candidate.above[0] for candidate in concept.candidates)

    def wanted(self) -> Iterator[str]:
        """The names of all samples that are read. Counters may have the ending `_total` or not."""
        for concept in self.concepts:
            selectors = [each for candidate in concept.candidates for each in candidate.selectors]
            for name in {each.name for each in selectors}:
                if concept.rule in COUNTERS:
                    yield from (name, f"{name}_total")
                elif concept.rule in GAUGES:
                    yield name
                else:
                    yield from (f"{name}_sum", f"{name}_count")
                    if concept.rule is Rule.HISTOGRAM:
                        yield f"{name}_bucket"
            yield from (each.name for candidate in concept.weights for each in candidate.selectors)
        yield from self.labels
        yield from (each.name for candidates in self.gauges.values() for c in candidates for each in c.selectors)
        yield from (each.name for each in self.versions)
