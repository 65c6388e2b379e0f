"""Logged beside predicted: nothing for nothing, differences that add up, reasons only where there is a difference."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.deployment import Deployment, Observed
from app.calc.measure import measure
from app.calc.memory.capacity import memory
from app.calc.memory.engines.parts import Given, Part
from app.calc.memory.logged import SAME, compare
from app.calc.quantity import GIB
from tests.calc.strategies import repeatable
from tests.factories import answer_to


def served(**given: float) -> Deployment:
    """Llama-3.1-8B under vLLM 0.11.0 on an H100, with what was measured."""
    settings = {"id": "vllm", "version": "0.11.0"} | {f"{name}_bytes": size for name, size in given.items()}
    return answer_to(engine=settings).evaluation.deployment


def test_without_a_measurement_there_is_nothing_to_compare() -> None:
    assert compare(served(), measure(served())) == ()


def test_what_was_measured_is_put_beside_what_the_scenario_alone_gives() -> None:
    # A published start-up of Llama-3.1-8B on an H100: 14.99, 4.76, 0.13 and 51.38 GiB of 0.9 × 79.18.
    logged = {
        "total_memory": 79.18 * GIB,
        "weights": 14.99 * GIB,
        "activation": 4.76 * GIB,
        "non_framework": 0.13 * GIB,
        "kv_pool": 51.38 * GIB,
    }
    deployment = replace(served(**logged), observed=Observed(kv_tokens=420_896))
    lines = {line.id: line for line in compare(deployment, measure(deployment))}
    assert set(lines) == {*logged, "kv_tokens", "kv_tokens_of_pool"}
    alone = memory(served())
    assert lines["weights"].predicted == alone.tightest.weights
    assert lines["activation"].predicted == alone.tightest.overhead(Part.ACTIVATION)
    assert lines["kv_pool"].predicted == alone.tightest.pool
    assert lines["kv_tokens"].predicted.mid == alone.kv_pool_tokens
    # 51.38 × 2^30 ÷ 2,097,152 B of a block of 16 tokens is 26,306 blocks: 420,896 tokens.
    assert lines["kv_tokens_of_pool"].predicted.mid == 420_896
    assert all(line.is_inside for line in lines.values())
    assert lines["kv_pool"].difference == pytest.approx(0, abs=0.005)


def test_the_difference_of_the_pool_is_taken_apart() -> None:
    predicted = memory(served())
    weights, pool = predicted.tightest.weights.mid, predicted.tightest.pool.mid
    deployment = served(weights=weights + 2 * GIB, kv_pool=pool - 3 * GIB)
    reason = next(line.reason for line in compare(deployment, measure(deployment)) if line.id == "kv_pool")
    assert reason.startswith("The log has 3 GiB less: 2 GiB less by weights")
    assert "1 GiB less that no line of the log accounts for" in reason


def test_graphs_are_compared_and_told_whether_the_release_charges_them() -> None:
    for version, words in (("0.11.0", "outside the share"), ("0.24.0", "as charged")):
        found = answer_to(engine={"id": "vllm", "version": version, "graph_bytes": 2.0**28}).evaluation
        (line,) = found.comparison
        assert (line.id, line.label, line.logged) == ("graphs", f"CUDA graphs, {words}", 2.0**28)


@repeatable
@given(
    st.builds(
        Given,
        total_memory=st.none() | st.floats(1e10, 9e10),
        weights=st.none() | st.floats(0, 9e10),
        activation=st.none() | st.floats(0, 9e10),
        non_framework=st.none() | st.floats(0, 9e10),
        graphs=st.none() | st.floats(0, 9e10),
        kv_pool=st.none() | st.floats(1, 9e10),
    ),
    st.builds(
        Observed,
        kv_tokens=st.none() | st.integers(0, 10**9),
        gpu_blocks=st.none() | st.integers(0, 10**9),
        max_concurrency=st.none() | st.floats(0, 1e6),
    ),
)
def test_every_line_says_whether_it_agrees_and_why_not(given_bytes: Given, observed: Observed) -> None:
    base = served()
    deployment = replace(base, engine=replace(base.engine, given=given_bytes), observed=observed)
    for line in compare(deployment, measure(deployment)):
        assert line.predicted.low <= line.predicted.mid <= line.predicted.high
        assert line.reason.endswith(".")
        if line.difference is not None and abs(line.difference) <= SAME:
            assert line.reason == "Agrees."
        assert (line.difference is None) is (line.logged <= 0)
