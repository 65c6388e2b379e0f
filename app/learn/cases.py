"""The scenarios of the lesson, made of the reader's own by changing one thing at a time."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields

from app.answer import Answer
from app.calc.coverage import step_weight_bytes
from app.calc.deployment_limits import MOST_CONCURRENT
from app.calc.layers.parts import FLOPS_PER_MULTIPLY_ADD
from app.catalog.catalog import Catalog
from app.learn.case import Case, case, changed
from app.scenario import Scenario

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
        """Every case once."""
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
    changes: dict[str, dict[str, object]] = {"workload": {"concurrency": users, **workload}}
    limit = asked.deployment.engine.max_num_seqs
    if limit is not None and limit * asked.deployment.split.data < users:
        changes["engine"] = {"max_num_seqs": users}
    return changed(scenario, changes)
