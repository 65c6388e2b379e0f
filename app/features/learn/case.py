"""The few scenarios that the lesson compares: the reader's own, and the same with one thing changed.

The scenarios of the lesson, made of the reader's own by changing one thing at a time.

Where a chapter's numbers are gathered: read from a case, worked out of each other, or quoted.

A chapter: its numbers, what is true of the reader's own case, and its charts.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any

from app.calc.accelerator import step_weight_bytes
from app.calc.deployment import Deployment
from app.calc.evaluate import Evaluation
from app.calc.measure import replica_batch
from app.calc.memory.engines.parts import MOST_CONCURRENT
from app.calc.model.layers.parts import FLOPS_PER_MULTIPLY_ADD
from app.calc.time.rule_of_thumb import RuleInputs, RuleOfThumb, rule_inputs
from app.calc.time.serving import Estimate
from app.catalog.catalog import Catalog
from app.features.learn.number import LiveNumber, Part, source_of, worked, written
from app.scenario.answer import Answer, answer
from app.scenario.refusal import ScenarioError
from app.scenario.scenario import Scenario
from app.web import urls
from app.web.figure import Chart


@dataclass(frozen=True)
class Case:
    """One scenario with its answer. `words` name it in a sentence: "one user", "64 users"."""

    key: str
    words: str
    answered: Answer

    @property
    def scenario(self) -> Scenario:
        """As it was asked, every field written out."""
        return self.answered.scenario

    @property
    def evaluation(self) -> Evaluation:
        return self.answered.evaluation

    @property
    def deployment(self) -> Deployment:
        return self.answered.evaluation.deployment

    @property
    def rule(self) -> RuleOfThumb:
        return self.answered.evaluation.rule_of_thumb

    @cached_property
    def batch(self) -> int:
        """Sequences that share one step of a replica."""
        return replica_batch(self.deployment, self.evaluation.measures.memory.running_sequences)

    @cached_property
    def inputs(self) -> RuleInputs:
        return rule_inputs(self.deployment, self.batch)

    def at(self, path: str) -> float:
        """The number at a dotted path of the evaluation's document, without writing the document.

        Raises:
            KeyError: there is no such number.
        """
        head, _, rest = path.partition(".")
        measures = self.evaluation.measures
        if head == "rule_of_thumb":
            found: Any = getattr(self.rule, rest)
        elif head == "memory":
            inner, _, key = rest.rpartition(".")
            found = getattr(measures.memory.per_gpu if inner else measures.memory, key)
        elif head == "serving":
            key, _, level = rest.partition(".")
            found = getattr(getattr(measures.serving, key), level)
        elif head == "goodput":
            found = getattr(self.evaluation.goodput, rest, None)
        elif head in ("prefill", "decode"):
            found = self._phase(head, rest)
        else:
            raise KeyError(path)
        if found is None:
            raise KeyError(path)
        return float(found)

    def _phase(self, phase: str, key: str) -> Any:
        measures = self.evaluation.measures
        if key.startswith("expected_s."):
            estimate: Estimate = measures.prefill_s if phase == "prefill" else measures.decode_s
            return getattr(estimate, key.partition(".")[2])
        return getattr(measures.prefill if phase == "prefill" else measures.decode, key)


def changed(scenario: Scenario, changes: Mapping[str, Mapping[str, Any]]) -> Scenario:
    """The scenario with some fields of some parts replaced; nothing is validated that is not computed."""
    parts = {part: getattr(scenario, part).model_copy(update=dict(fields)) for part, fields in changes.items()}
    return scenario.model_copy(update=parts)


def case(key: str, words: str, scenario: Scenario, catalog: Catalog) -> Case | None:
    """The case of a scenario; None where it is not computed, such as an engine that refuses the model."""
    try:
        return Case(key, words, answer(scenario, catalog))
    except ScenarioError:
        return None


SAMPLE_USERS = 64
"""Users of the example where the reader asks for a single one."""
BEYOND_RIDGE = 1.25
LONGER_PROMPT = 8


@dataclass(frozen=True, slots=True)
class Cases:
    """All but `asked` are of one replica. `chats` are the crowd with conversations of `chat_tokens` tokens.

    `past` is a batch well beyond the ridge, `longest` one user whose conversation is as long as the model allows,
    `wordy` the crowd with prompts several times as long, `promised` what was asked with targets for both waits.
    """

    asked: Case
    one: Case
    crowd: Case
    past: Case
    chats: Case
    longest: Case
    wordy: Case
    promised: Case
    chat_tokens: int

    def __iter__(self) -> Iterator[Case]:
        return (value for field in fields(self) if isinstance(value := getattr(self, field.name), Case))


def cases_of(answered: Answer, chat_tokens: int, targets: tuple[float, float], catalog: Catalog) -> Cases:
    """The cases of an answer; `targets` are for the first and for each further token, s, where it has none.

    Raises:
        ScenarioError: one of them is not computed; only the numbers of requests differ, so all or none are.
    """
    asked = Case("asked", "as asked", answered)
    scenario = changed(asked.scenario, {"hardware": {"count": None}})
    users = asked.batch if asked.batch > 1 else SAMPLE_USERS
    tokens = asked.deployment.workload.total_tokens
    limit = asked.deployment.architecture.max_position or max(tokens, chat_tokens)
    past = _past_ridge(asked)

    def made(key: str, words: str, users: int, **workload: int) -> Case:
        found = case(key, words, _of_users(scenario, users, asked, **workload), catalog)
        if found is None:
            raise ValueError(f"{key} is not computed")  # only numbers differ from what was
        return found

    asked_of = scenario.workload
    kept = {"slo_ttft_s": asked_of.slo_ttft_s or targets[0], "slo_tpot_s": asked_of.slo_tpot_s or targets[1]}
    promised = case("promised", "as asked, with both targets", changed(asked.scenario, {"workload": kept}), catalog)
    assert promised is not None  # noqa: S101  # targets change nothing that could be refused
    return Cases(
        asked=asked,
        one=made("one", "one user", 1),
        crowd=made("crowd", f"{users:,} users", users),
        past=made("past", f"{past:,} users", past),
        chats=made("chats", f"{users:,} users at {chat_tokens:,} tokens", users, **_split(asked, chat_tokens)),
        longest=made("longest", f"one user at {limit:,} tokens", 1, **_split(asked, limit)),
        wordy=made(
            "wordy",
            f"{users:,} users with prompts {LONGER_PROMPT} times as long",
            users,
            prompt_tokens=LONGER_PROMPT * scenario.workload.prompt_tokens,
        ),
        promised=promised,
        chat_tokens=chat_tokens,
    )


def ridge_users(of: Case) -> float:
    """Sequences from which the arithmetic of a step takes as long as one reading of all weights.

    Of a mixture of experts all are read by then: W ÷ BW × P ÷ (2 × N). Worked number: 295 for Llama-3.1-8B on an H100.
    """
    inputs = of.inputs
    return (
        all_step_bytes(of)
        / inputs.bandwidth_bytes_per_s
        * inputs.peak_flops_per_s
        / (FLOPS_PER_MULTIPLY_ADD * inputs.n_params)
    )


def all_step_bytes(of: Case) -> float:
    """Bytes of the weights that a step of very many sequences reads."""
    return float(step_weight_bytes(of.deployment.architecture, of.deployment.precision.weights, math.inf))


def _past_ridge(of: Case) -> int:
    """The power of two beyond the ridge, with some room between, and beyond those who are there already."""
    wanted = math.ceil(math.log2(max(2.0, BEYOND_RIDGE * ridge_users(of), of.batch + 1)))
    return min(1 << wanted, MOST_CONCURRENT)


def _split(of: Case, total_tokens: int) -> dict[str, int]:
    """Prompt and answer of a conversation so long: the answer as asked, or half of what there is."""
    answer_tokens = max(1, min(of.scenario.workload.output_tokens, total_tokens // 2))
    return {"prompt_tokens": max(1, total_tokens - answer_tokens), "output_tokens": answer_tokens}


def _of_users(scenario: Scenario, users: int, asked: Case, **workload: int) -> Scenario:
    """The scenario with so many users in one replica; a limit that the engine sets itself is lifted for them."""
    if "prompt_tokens" in workload:  # a shorter prompt has no more to share than it is long
        workload["shared_prefix_tokens"] = min(scenario.workload.shared_prefix_tokens, workload["prompt_tokens"])
    changes: dict[str, dict[str, object]] = {"workload": {"concurrency": users, **workload}}
    limit = asked.deployment.engine.max_num_seqs
    if limit is not None and limit * asked.deployment.split.data < users:
        changes["engine"] = {"max_num_seqs": users}
    return changed(scenario, changes)


EXACT = 15
"""Digits that write a count out in full."""


class Desk:
    """The numbers of one chapter by key, in the order in which they were put there."""

    def __init__(self, chapter: str) -> None:
        self._chapter = chapter
        self._numbers: dict[str, LiveNumber] = {}

    @property
    def numbers(self) -> Mapping[str, LiveNumber]:
        return self._numbers

    def read(self, key: str, label: str, case: Case, path: str, unit: str, digits: int = 4) -> LiveNumber:
        """The number at a path of a case's evaluation."""
        return self.given(key, label, case.at(path), unit, path, digits, case.key)

    def term(self, key: str, label: str, case: Case, value: float, at: str, unit: str, digits: int = 4) -> LiveNumber:
        """What a working of a case names as a term; `at` is the working's id and the term's symbol."""
        return self.given(key, label, value, unit, f"term {at}", digits, case.key)

    def given(
        self, key: str, label: str, value: float, unit: str, source: str, digits: int = 4, case: str = ""
    ) -> LiveNumber:
        """A number whose source is said in words."""
        return self._put(
            LiveNumber(f"{self._chapter}.{key}", label, value, unit, written(value, unit, digits), source, case)
        )

    def made(self, key: str, label: str, unit: str, *parts: Part, digits: int = 4) -> LiveNumber:
        """A number worked out of others."""
        value, text = worked(parts), ""
        text = written(value, unit, digits)
        return self._put(
            LiveNumber(f"{self._chapter}.{key}", label, value, unit, text, source_of(parts), parts=tuple(parts))
        )

    def shown(
        self, key: str, label: str, case: Case, path: str, unit: str, *parts: Part, digits: int = 4
    ) -> LiveNumber:
        """A number of a case's evaluation, with the sum that leads to it: a test works the sum out again."""
        value = case.at(path)
        return self._put(
            LiveNumber(
                f"{self._chapter}.{key}",
                label,
                value,
                unit,
                written(value, unit, digits),
                path,
                case.key,
                tuple(parts),
            )
        )

    def sum_of(self, key: str, label: str, value: float, unit: str, *parts: Part, digits: int = 4) -> LiveNumber:
        """A number that a formula of the calculators gave, with the sum that it stands for."""
        text = written(value, unit, digits)
        return self._put(
            LiveNumber(f"{self._chapter}.{key}", label, value, unit, text, source_of(parts), parts=tuple(parts))
        )

    def tokens(self, key: str, label: str, case: Case, field: str) -> LiveNumber:
        """Tokens of the scenario's workload, in full."""
        tokens = getattr(case.scenario.workload, field)
        return self.given(key, label, tokens, "tokens", f"scenario.workload.{field}", EXACT, case.key)

    def parameters(self, key: str, case: Case) -> LiveNumber:
        """Parameters that a token meets."""
        met = " that a token meets" if case.deployment.architecture.has_experts else ""
        return self.term(
            key, f"parameters{met}", case, case.inputs.n_params, "rule_of_thumb.prefill_flops N", "params", 3
        )

    def peak(self, key: str, case: Case, at: str) -> LiveNumber:
        """The rate of the arithmetic, all GPUs of a replica added up."""
        return self.term(key, "arithmetic a second", case, case.inputs.peak_flops_per_s, at, "FLOP/s")

    def bandwidth(self, key: str, case: Case, at: str) -> LiveNumber:
        """The rate of the memory, all GPUs of a replica added up."""
        return self.term(key, "memory bandwidth", case, case.inputs.bandwidth_bytes_per_s, at, "B/s")

    def _put(self, number: LiveNumber) -> LiveNumber:
        self._numbers[number.key] = number
        return number


_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Chapter:
    """`numbers` by key; `says` are the conditions by which the prose chooses its sentences; `case` is its scenario."""

    id: str
    title: str
    numbers: Mapping[str, LiveNumber]
    case: Case
    says: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    charts: Mapping[str, Chart] = field(default_factory=lambda: _NOTHING)

    @property
    def workbench(self) -> str:
        """The workbench with the chapter's scenario."""
        return urls.workbench(urls.scenario_items(self.case.scenario))
