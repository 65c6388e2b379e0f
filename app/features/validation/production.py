"""DeepSeek-V3/R1 as served in production: the published deployment as a scenario, and its figures beside ours.

What was published says the sizes of both sides, the tokens of a day and the tokens a second of a node. Lengths and the
number of requests at a time follow from those, step by step, and nothing is fitted to make the answer come out.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path

from app.calc.derivation import Explanation, Term
from app.calc.time.expected.timing import packed_prompt_s, prompts_of
from app.catalog.catalog import Catalog
from app.scenario.answer import Answer, answer
from app.scenario.scenario import Scenario

DATA_FILE = Path(__file__).resolve().parents[2] / "catalog" / "data" / "production.toml"
MEMORY_SHARE = 0.95
"""Their engine is their own; it is taken to leave less beside the cache than the public ones' default."""


@dataclass(frozen=True, slots=True)
class Published:
    """What the operator told, and what follows from it. Tokens, tokens a second, GPUs."""

    source: str
    model: str
    hardware: str
    gpus_per_node: int
    input_tokens: float
    cached_tokens: float
    output_tokens: float
    context_tokens: float
    user_tokens_per_s_low: float
    user_tokens_per_s_high: float
    prefill_tokens_per_s: float
    decode_tokens_per_s: float
    prefill_gpus: int
    decode_gpus: int

    @property
    def hit_rate(self) -> float:
        """Share of the prompts found in the cache: 342 ÷ 608 = 56.25 %."""
        return self.cached_tokens / self.input_tokens

    @property
    def answer_tokens(self) -> int:
        """Tokens of an answer: with r prompt tokens for each, (r + ½) · n is the context half-way through it."""
        ratio = self.input_tokens / self.output_tokens
        return round(self.context_tokens / (ratio + 0.5))

    @property
    def prompt_tokens(self) -> int:
        return round(self.context_tokens - self.answer_tokens / 2)

    @property
    def user_tokens_per_s(self) -> float:
        """The middle of what users were told to get."""
        return (self.user_tokens_per_s_low + self.user_tokens_per_s_high) / 2

    @property
    def requests_per_gpu(self) -> int:
        """Requests at a time on a GPU that decodes: what it gives ÷ what a user gets."""
        return round(self.decode_tokens_per_s / self.gpus_per_node / self.user_tokens_per_s)

    @property
    def concurrency(self) -> int:
        """Requests at a time of one decode unit."""
        return self.requests_per_gpu * self.decode_gpus

    @property
    def prefill_units(self) -> int:
        """Prefill units beside one decode unit: the next whole number that keeps up, by the published figures."""
        needed = self.decode_tokens_per_s * self.decode_gpus * self.input_tokens / self.output_tokens
        return ceil(needed / (self.prefill_tokens_per_s * self.prefill_gpus))


@cache
def published() -> Published:
    """The published figures."""
    return Published(**tomllib.loads(DATA_FILE.read_text(encoding="utf-8")))


def production_scenario() -> Scenario:
    """One decode unit of 18 nodes, and the prefill units that keep up with it."""
    told = published()
    return Scenario.model_validate(
        {
            "model": {"id": told.model},
            "hardware": {"id": told.hardware, "count": told.decode_gpus},
            "parallelism": {"data": told.decode_gpus, "expert": told.decode_gpus},
            "engine": {"memory_utilization": MEMORY_SHARE},
            "workload": {
                "prompt_tokens": told.prompt_tokens,
                "output_tokens": told.answer_tokens,
                "concurrency": told.concurrency,
                "prefix_hit_rate": told.hit_rate,
            },
            "techniques": {
                "disaggregation": {
                    "hardware": {"id": told.hardware},
                    "data": told.prefill_gpus,
                    "expert": told.prefill_gpus,
                    "instances": told.prefill_units,
                    "link": "ib-ndr",
                }
            },
        }
    )


@dataclass(frozen=True, slots=True)
class Side:
    """One side of the deployment: tokens a second of a node as published, at the ceiling and as expected."""

    id: str
    label: str
    published: float
    ceiling: float
    expected: float
    explanation: Explanation

    @property
    def ratio(self) -> float:
        """Expected ÷ published."""
        return self.expected / self.published


@dataclass(frozen=True, slots=True)
class Production:
    """The published deployment beside its prediction."""

    answer: Answer
    sides: tuple[Side, ...]


def production(catalog: Catalog) -> Production:
    """The comparison.

    Raises:
        ValueError: the catalog has no calibration to predict with.
    """
    answered = answer(production_scenario(), catalog)
    return Production(answered, (_prefill(answered), _decode(answered)))


def _prefill(answered: Answer) -> Side:
    """Prompts of a node that does nothing else; found tokens count, as they did for the operator."""
    told, deployment, measures = published(), answered.evaluation.deployment, answered.evaluation.measures
    pool, calibration = deployment.prefill_pool, deployment.calibration
    if pool is None or calibration is None:
        raise ValueError("Nothing to predict with.")
    prompts = prompts_of(deployment, calibration, 1.0)
    each = packed_prompt_s(prompts)
    nodes = told.prefill_gpus / told.gpus_per_node
    least = measures.prompt_compute_s
    rate = told.prompt_tokens * told.prefill_gpus / nodes
    terms = (
        Term("p", "tokens of a prompt, found ones counted", told.prompt_tokens, "tokens"),
        Term("g", "GPUs of a node, each with its own prompts", told.gpus_per_node, ""),
        Term("t", f"one more prompt on a GPU, {told.hit_rate:.1%} of it found".replace("%", " %"), each, "s"),
    )
    label = "Input tokens a second of a node"
    working = Explanation("production.prefill", label, "p × g ÷ t", terms, rate / each, "tokens/s", told.source)
    return Side("prefill", "Prefill, input tokens", told.prefill_tokens_per_s, rate / least, rate / each, working)


def _decode(answered: Answer) -> Side:
    told, measures = published(), answered.evaluation.measures
    tpot, running = measures.serving.tpot_s, measures.memory.served_sequences
    nodes = told.decode_gpus / told.gpus_per_node
    terms = (
        Term("B", "requests at a time of a unit", running, ""),
        Term("TPOT", "time per output token, expected", tpot.best_known, "s"),
        Term("N", "nodes of a unit", nodes, ""),
    )
    rate = running / tpot.best_known / nodes
    working = Explanation(
        "production.decode", "Output tokens a second of a node", "B ÷ TPOT ÷ N", terms, rate, "tokens/s", told.source
    )
    ceiling = running / tpot.ceiling / nodes
    return Side("decode", "Decode, output tokens", told.decode_tokens_per_s, ceiling, rate, working)
