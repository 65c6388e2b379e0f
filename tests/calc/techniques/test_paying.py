"""Where guessing stops paying: the pace with and without over the batch, and what was measured of it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.coverage import coverage
from app.calc.deployment import Deployment
from app.calc.measure import measure
from app.calc.techniques.paying import Paying, paying
from app.calc.techniques.speculation import Method, speculation_of
from app.resolve import resolve
from tests.calc.strategies import array, repeatable
from tests.factories import deployment, scenario, shipped_catalog

LLAMA = {"model": "llama-3.1-8b", "engine": {"id": "sglang"}}
DENSE = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "gemma-3-27b")
SPARSE = ("qwen3-30b-a3b", "gpt-oss-120b", "deepseek-v3")


def guessing(
    k: int = 3, length: float = 2.8, method: str = "eagle", hardware: str = "h100-sxm-80gb", **sections: Any
) -> Deployment:
    speculative = {"method": method, "draft_tokens": k, "acceptance_length": length}
    sections = LLAMA | sections
    workload = {"prompt_tokens": 500, "output_tokens": 500, "concurrency": 1}
    asked = scenario(hardware=hardware, techniques={"speculative": speculative}, workload=workload, **sections)
    return resolve(asked, shipped_catalog()).deployment


def gain(asked: Deployment) -> float:
    """How many times sooner a token comes to one user, as expected."""
    plain = replace(asked, speculation=None, draft=None, engine=replace(asked.engine, draft_tokens=0))
    return (measure(plain).serving.tpot_s.mid or 0.0) / (measure(asked).serving.tpot_s.mid or 1.0)


def curve(*gains: float) -> Paying:
    """A curve with these gains at batches of 1, 10, 100 and so on."""
    ones = np.ones(len(gains))
    return Paying(np.logspace(0, len(gains) - 1, len(gains)), ones, ones / array(list(gains)), None, None)


def test_where_it_stops_by_hand() -> None:
    assert curve(2.0, 1.5, 0.5).stops_at == pytest.approx(10**1.5)  # half-way between 10 and 100, on a log scale
    assert curve(2.0, 1.5, 1.2).stops_at is None
    assert curve(0.9, 0.8, 0.7).stops_at == 1.0
    assert curve(0.9, 1.2, 0.8).stops_at == pytest.approx(10**1.5)  # the last time
    assert curve(0.9, 0.8, 1.2).stops_at is None


def test_the_curve_is_what_single_batches_give() -> None:
    asked = guessing()
    found = paying(asked, array([1.0, 7.0, 64.0]))
    for place, batch in enumerate((1, 7, 64)):
        crowd = replace(asked.workload, concurrency=batch)
        one = measure(replace(asked, workload=crowd)).expected
        assert one is not None
        assert found.expected_guessed_s is not None
        assert found.expected_guessed_s[place] == pytest.approx(one.step.total_s / asked.tokens_per_step)
        assert found.guessed_s[place] == pytest.approx(one.decode.ceiling / asked.tokens_per_step)


def test_another_acceptance_scales_the_guessed_side_alone() -> None:
    asked = guessing()
    found = paying(asked).at(1.4)
    speculation = asked.speculation
    assert speculation is not None
    other = paying(replace(asked, speculation=speculation_of(Method.EAGLE, 3, None, 1.4, speculation.drafter)))
    assert found.guessed_s == pytest.approx(other.guessed_s)
    assert found.plain_s == pytest.approx(other.plain_s)
    assert found.expected_guessed_s is not None
    assert (found.expected_guessed_s >= found.guessed_s * (1 - 1e-12)).all()


def test_without_a_calibration_the_ceilings_decide() -> None:
    asked = replace(guessing(), calibration=None)
    found = paying(asked)
    assert (found.expected_plain_s, found.at(2).expected_guessed_s) == (None, None)
    assert found.gain == pytest.approx(found.plain_s / found.guessed_s)


@repeatable
@given(st.floats(0, 1), st.integers(1, 8), st.sampled_from(["llama-3.1-8b", "qwen3-30b-a3b"]))
def test_the_gain_is_never_more_than_the_tokens_of_a_step(share: float, k: int, model: str) -> None:
    length = 1 + share * k
    found = paying(guessing(k, length, "ngram", model=model), np.geomspace(1, 4096, 9))
    assert (found.gain <= length * (1 + 1e-9)).all()
    assert (found.plain_s / found.guessed_s <= length * (1 + 1e-9)).all()


def test_past_the_ridge_it_costs_what_it_guesses_in_vain() -> None:
    """Arithmetic-bound, k + 1 positions take k + 1 times as long: the gain falls to a ÷ (k + 1)."""
    short = replace(deployment().workload, prompt_tokens=1, output_tokens=2)
    speculation = speculation_of(Method.NGRAM, 3, None, 2.8, None)
    found = paying(deployment(workload=short, speculation=speculation), array([1.0, 50_000.0]))
    assert found.gain[0] == pytest.approx(2.8, rel=0.01)
    assert found.gain[-1] == pytest.approx(2.8 / 4, rel=0.01)


# Published gains, all with one request at a time. The lengths of those very runs are not told, only the range that the
# methods reach; that range is 10 % to either side of its middle, so a gain may be off by as much, and by 5 % more for
# what engines overlap of the drafter's passes. 15 % it is.
TOLERANCE = 0.15


@pytest.mark.parametrize("length", [2.5, 2.75, 3.0])
def test_eagle_3_on_llama_3_1_8b_and_an_h100_gains_what_was_published(length: float) -> None:
    """SGLang, 158 tokens/s without and 373 with EAGLE-3: 2.36 times, for 2.5 to 3.0 tokens of three guesses."""
    assert gain(guessing(3, length)) == pytest.approx(373 / 158, rel=TOLERANCE)
    plain = measure(replace(guessing(), speculation=None, draft=None)).serving.output_tokens_per_s_per_user.mid
    assert plain == pytest.approx(158, rel=0.2)  # as far off as tokens of one user are elsewhere: docs/expected.md


def test_eagle_2_fits_a_length_shorter_than_eagle_3_reaches() -> None:
    """244 tokens/s with EAGLE-2, 1.54 times: between no overhead at all and 1.7 times the length, as measured ones."""
    tokens_of_gain = 2.8 / gain(guessing(3, 2.8))
    implied = 244 / 158 * tokens_of_gain
    assert 244 / 158 <= implied <= 244 / 158 * 1.7
    assert implied < 2.5


@pytest.mark.parametrize("length", [1.78, 1.93])
def test_one_guess_of_own_layers_on_deepseek_v3_2(length: float) -> None:
    """125 tokens/s without and 234 with, on B300s: 1.87 times, which at a length of at most 1.93 leaves 3 % for the
    guessing and checking. Ours is the least that operators allow, and so below it.
    """
    model = {"id": "deepseek-v3.2", "mtp": True}
    asked = guessing(1, length, "mtp", "b300-sxm", model=model, parallelism={"tensor": 8})
    assert gain(asked) == pytest.approx(234 / 125, rel=TOLERANCE)
    assert gain(asked) < length


@pytest.mark.parametrize("hardware", ["h100-sxm-80gb", "h200-sxm", "b200-sxm", "a100-sxm-80gb"])
@pytest.mark.parametrize("model", DENSE)
def test_the_gain_of_one_user_is_the_length_divided_by_1_to_1_7(model: str, hardware: str) -> None:
    """What is stated wherever both are: computed over the published pairs of length and speed-up."""
    split = {"tensor": 4} if model == "llama-3.1-70b" else {}
    for k, length in ((1, 1.85), (3, 2.5), (3, 3.0)):
        found = gain(guessing(k, length, hardware=hardware, model=model, parallelism=split))
        assert length / 1.7 <= found <= length, (k, length)


@pytest.mark.parametrize("model", SPARSE)
def test_guesses_read_further_experts_and_gain_less_than_on_a_dense_model(model: str) -> None:
    """n-grams cost no drafting, so that all of the difference is the checking."""
    tensor = {"tensor": 8} if model == "deepseek-v3" else {}
    sparse = guessing(3, 2.8, "ngram", "h200-sxm", model=model, parallelism=tensor)
    dense = guessing(3, 2.8, "ngram", "h200-sxm")
    one, four = (float(coverage(sparse.architecture, tokens)) for tokens in (1.0, 4.0))
    assert one < four < 4 * one
    plain, guessed = (paying(asked, array([1.0])) for asked in (sparse, dense))
    assert plain.gain[0] < guessed.gain[0] < 2.8
    assert plain.plain_s[0] / plain.guessed_s[0] < guessed.plain_s[0] / guessed.guessed_s[0]
