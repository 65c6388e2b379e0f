"""The frontier: every point that is drawn fits, one more sequence does not, and the ideal engine holds no fewer."""

from functools import cache

import pytest

from app.calc.memory.engines.parts import MOST_CONCURRENT
from app.features.workbench.charts.frontier import Frontier, asked, frontier
from app.features.workbench.charts.gallery import CHARTS
from app.scenario.answer import Answer
from tests.factories import answer_to
from tests.features.workbench.charts.cases import answers, lines, traces, workload

LATENT = {"tensor": 8, "data": 2}


@cache
def cases() -> dict[str, Answer]:
    more = {
        "stages": answer_to("llama-3.1-70b", parallelism={"pipeline": 4}),
        "data ranks": answer_to("deepseek-v3", "h200-sxm", parallelism=LATENT, precision={"weights": "fp8"}),
        "replicas": answer_to(hardware={"id": "h100-sxm-80gb", "count": 4}),
        "sglang": answer_to(engine={"id": "sglang"}),
        "tensorrt-llm": answer_to(engine={"id": "tensorrt-llm"}),
        "llama.cpp": answer_to(engine={"id": "llama.cpp"}),
        "ideal": answer_to(engine={"id": "ideal"}),
        "limits of the engine": answer_to(engine={"max_model_len": 8192, "max_num_seqs": 32}),
        "hybrid": answer_to("qwen3.5-27b", precision={"kv_cache": "fp8"}, workload=workload(8_000, 1_000, 16)),
    }
    return {**answers(), **more}


NAMES = tuple(cases())


@pytest.fixture(params=NAMES)
def answered(request: pytest.FixtureRequest) -> Answer:
    return cases()[str(request.param)]


def at_scenario(answered: Answer) -> tuple[Frontier, int]:
    found = frontier(answered.evaluation)
    return found, found.contexts.index(answered.evaluation.deployment.workload.total_tokens)


def test_at_the_scenarios_length_it_is_the_evaluations_room(answered: Answer) -> None:
    found, at = at_scenario(answered)
    held, deployment = answered.evaluation.measures.memory, answered.evaluation.deployment
    if deployment.engine.max_num_seqs is None:  # the chart draws memory; what is set apart from it is a line
        assert found.mid[at] == held.max_concurrency
        assert (found.low[at], found.high[at]) == held.max_concurrency_interval
    assert found.low[at] <= found.mid[at] <= found.high[at] <= max(found.high[at], found.ideal[at])


def test_longer_conversations_are_never_more(answered: Answer) -> None:
    found = frontier(answered.evaluation)
    for side in (found.low, found.mid, found.high, found.ideal):
        assert list(side) == sorted(side, reverse=True)
    assert 30 <= len(found.contexts) <= 45


def test_no_engine_holds_more_than_the_ideal_one(answered: Answer) -> None:
    found = frontier(answered.evaluation)
    assert all(mid <= ideal for mid, ideal in zip(found.mid, found.ideal, strict=True))


def test_each_drawn_point_fits_and_one_more_sequence_does_not(answered: Answer) -> None:
    held, deployment = answered.evaluation.measures.memory, answered.evaluation.deployment
    engines = deployment.replicas * deployment.split.data
    made = CHARTS["frontier"](answered.evaluation, False)

    def fitting(tokens: int) -> int:
        return min(rank.fitting(deployment, rank.pool.mid, tokens) for rank in held.ranks)

    for trace in traces(made.figure, "This engine"):
        for sequences, tokens in zip(trace["x"], trace["y"], strict=True):
            assert min(MOST_CONCURRENT, fitting(tokens) * engines) >= sequences
    for sequences, tokens in frontier(answered.evaluation).corners[1]:
        assert fitting(tokens) * engines >= sequences
        assert fitting(2 * tokens + 512) * engines < sequences or sequences >= MOST_CONCURRENT


def test_the_chosen_point_and_the_limits_are_drawn(answered: Answer) -> None:
    made, deployment = CHARTS["frontier"](answered.evaluation, False), answered.evaluation.deployment
    (here,) = traces(made.figure, "This scenario")
    assert (here["x"], here["y"]) == ([asked(answered.evaluation)], [deployment.workload.total_tokens])
    limit, served = deployment.architecture.max_position, deployment.engine.max_model_len
    assert [line["y0"] for line in lines(made.figure, "muted")] == ([limit] if limit else [])
    drawn = [line["y0"] for line in lines(made.figure, "limit") if line.get("xref") == "paper"]
    assert drawn == ([served] if served and served != limit else [])


def test_an_estimate_looks_like_one_and_a_measurement_does_not() -> None:
    for name, dash in (("reference", "dot"), ("measured pool, small", "solid"), ("ideal", "solid")):
        made = CHARTS["frontier"](cases()[name].evaluation, False)
        (line,) = traces(made.figure, "This engine")
        assert line["line"]["dash"] == dash
        assert bool(traces(made.figure, "Eight cases of ten")) == (dash == "dot")
        (ideal,) = traces(made.figure, "Ideal engine, whole card")
        assert ideal["line"]["dash"] == "solid"


def test_the_table_is_the_frontier(answered: Answer) -> None:
    made, found = CHARTS["frontier"](answered.evaluation, False), frontier(answered.evaluation)
    columns = list(zip(*made.table.rows, strict=True))
    assert columns[:5] == [found.contexts, found.mid, found.low, found.high, found.ideal]


def test_the_summary_says_the_room_or_that_there_is_none() -> None:
    found, at = at_scenario(cases()["reference"])
    summary = CHARTS["frontier"](cases()["reference"].evaluation, False).summary
    assert f"room for {found.mid[at]:,} sequences ({found.low[at]:,} to {found.high[at]:,} in eight" in summary
    assert f"would hold {found.ideal[at]:,}" in summary
    assert "not one sequence fits" in CHARTS["frontier"](cases()["weights do not fit"].evaluation, False).summary
