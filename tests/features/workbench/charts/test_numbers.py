"""What is drawn, what stands in the table and what the evaluation says are the same numbers."""

from typing import Any

import pytest

from app.calc.accelerator import step_weight_bytes
from app.calc.quantity import quantity, significant
from app.calc.time.rule_of_thumb import rule_inputs
from app.scenario.answer import Answer
from app.web.figure import LANDMARKS, Chart
from tests.features.workbench.charts.cases import answers, chart, lines, traces

NAMES = tuple(answers())
GB, GIB = 1e9, 2.0**30


def column(made: Chart, name: str) -> list[Any]:
    at = made.table.columns.index(name)
    return [row[at] for row in made.table.rows]


def row(made: Chart, name: str) -> dict[str, Any]:
    found = [r for r in made.table.rows if r[0] == name]
    assert len(found) == 1
    return dict(zip(made.table.columns, found[0], strict=True))


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def answered(name: str) -> Answer:
    return answers()[name]


def test_the_roofline_stands_on_the_evaluation(name: str, answered: Answer) -> None:
    made, measures = chart(name, "roofline"), answered.evaluation.measures
    for phase, cost in (("prefill", measures.prefill), ("decode", measures.decode)):
        table = row(made, phase)
        assert table["intensity (FLOP/B)"] == cost.intensity_flops_per_byte
        assert table["arithmetic (FLOP/s)"] == cost.flops / cost.ceiling_s
        assert (table["FLOP"], table["bytes (B)"], table["bound"]) == (cost.flops, cost.bytes, cost.bound.value)
        drawn = [t for t in made.figure["data"] if t["name"].casefold().startswith(phase) and t["mode"] == "markers"]
        assert [(t["x"], t["y"]) for t in drawn] == [
            ([cost.intensity_flops_per_byte], [pytest.approx(cost.flops / cost.ceiling_s)])
        ]


def test_the_ridge_line_stands_where_the_roof_bends(name: str, answered: Answer) -> None:
    made, deployment = chart(name, "roofline"), answered.evaluation.deployment
    ridge = answered.evaluation.rule_of_thumb.ridge_flops_per_byte
    assert [line["x0"] for line in lines(made.figure, "ridge")] == [pytest.approx(ridge)]
    assert all(line["x0"] == line["x1"] for line in lines(made.figure, "ridge"))
    roof = traces(made.figure, f"{deployment.precision.compute} roof")[0]
    peak = deployment.accelerator.peak(deployment.precision.compute)
    assert roof["x"][1] == pytest.approx(ridge)
    assert roof["y"][1:] == pytest.approx([peak, peak])
    slope = roof["x"][0] * deployment.accelerator.bandwidth_bytes_per_s
    assert roof["y"][0] == pytest.approx(min(slope, peak))
    assert roof["visible"] is True
    others = [t for t in made.figure["data"] if t["name"].endswith(" roof") and t is not roof]
    assert all(t["visible"] == "legendonly" for t in others)
    assert len(others) == len(deployment.accelerator.peak_flops_per_s) - 1
    memory, arithmetic = (
        next(s for s in made.figure["layout"]["shapes"] if s.get("fillcolor") == f"@{zone}")
        for zone in ("memoryzone", "computezone")
    )
    assert memory["x1"] == arithmetic["x0"] == pytest.approx(ridge)


def test_the_ridge_lies_inside_the_roofline(name: str, answered: Answer) -> None:
    figure = chart(name, "roofline").figure
    low, high = (10**exponent for exponent in figure["layout"]["xaxis"]["range"])
    assert low <= answered.evaluation.rule_of_thumb.ridge_flops_per_byte <= high


def test_no_point_stands_above_its_roof(name: str, answered: Answer) -> None:
    made, deployment = chart(name, "roofline"), answered.evaluation.deployment
    for trace in made.figure["data"]:
        if trace["name"].endswith((" roof", "which prefills")):
            continue
        accelerator = (deployment.prompt_side if trace["name"] == "Prefill" else deployment).accelerator
        highest = max(accelerator.peak_flops_per_s.values())
        for x, y in zip(trace["x"], trace["y"], strict=True):
            assert y <= min(highest, x * accelerator.bandwidth_bytes_per_s) * (1 + 1e-9)


def test_the_path_of_decode_goes_through_the_scenario(name: str, answered: Answer) -> None:
    made, measures = chart(name, "roofline"), answered.evaluation.measures
    path = traces(made.figure, "Decode by batch")[0]
    at = path["customdata"].index(measures.memory.running_sequences)
    assert path["x"][at] == pytest.approx(measures.decode.intensity_flops_per_byte)
    assert path["y"][at] == pytest.approx(measures.decode.flops / measures.decode.ceiling_s)
    assert path["customdata"] == sorted(set(path["customdata"]))
    for mark in (m for m in LANDMARKS if m in path["customdata"]):
        assert row(made, f"decode at batch {mark:,}")["intensity (FLOP/B)"] == path["x"][path["customdata"].index(mark)]


def test_the_batch_table_is_the_batch_figure(name: str, answered: Answer) -> None:
    made, measures = chart(name, "batch"), answered.evaluation.measures
    everyone, each = traces(made.figure, "With the cache (ceiling)")[::-1]
    if everyone["yaxis"] != "y":
        everyone, each = each, everyone
    assert column(made, "batch") == everyone["x"] == each["x"]
    assert column(made, "all users, with cache (tokens/s)") == pytest.approx(everyone["y"])
    assert column(made, "each user, with cache (tokens/s)") == pytest.approx(each["y"])
    at = column(made, "batch").index(measures.memory.running_sequences)
    assert column(made, "a token, with cache (s)")[at] == pytest.approx(measures.serving.tpot_s.ceiling)
    assert each["y"][at] == pytest.approx(measures.serving.output_tokens_per_s_per_user.ceiling)
    rule = answered.evaluation.rule_of_thumb
    assert column(made, "all users, weights alone (tokens/s)")[at] == pytest.approx(rule.decode_tokens_per_s)
    here = {t["yaxis"]: (t["x"], t["y"]) for t in traces(made.figure, "This scenario")}
    served, step = measures.memory.served_sequences, measures.decode_s.mid
    assert step is not None
    step /= answered.evaluation.deployment.tokens_per_step
    assert here["y"] == ([served], [pytest.approx(served / step)])
    assert here["y2"] == ([served], [pytest.approx(1 / step)])
    reached = {t["yaxis"]: t for t in traces(made.figure, "Expected")}
    assert column(made, "all users, expected (tokens/s)") == pytest.approx(reached["y"]["y"])
    assert column(made, "each user, expected (tokens/s)") == pytest.approx(reached["y2"]["y"])
    assert all(e <= c * (1 + 1e-9) for e, c in zip(reached["y"]["y"], everyone["y"], strict=True))


def test_capacity_and_ridge_of_the_batch_chart(name: str, answered: Answer) -> None:
    made, held = chart(name, "batch"), answered.evaluation.measures.memory
    deployment, top = answered.evaluation.deployment, column(made, "batch")[-1]
    drawn = [line["x0"] for line in lines(made.figure, "ridge")]
    inputs = rule_inputs(deployment, held.running_sequences)
    for ridge in drawn:  # there, reading the weights takes as long as the arithmetic on them
        assert ridge < top
        read = float(step_weight_bytes(deployment.architecture, deployment.precision.weights, ridge))
        arithmetic = 2 * inputs.n_params * ridge / inputs.peak_flops_per_s
        assert arithmetic == pytest.approx(read / inputs.bandwidth_bytes_per_s, rel=1e-3)
    if not drawn:
        assert inputs.weights_bytes / inputs.bandwidth_bytes_per_s > 2 * inputs.n_params * top / inputs.peak_flops_per_s
    full = [line["x0"] for line in lines(made.figure, "limit")]
    assert full == ([held.max_concurrency] if 0 < held.max_concurrency < top else [])
    fits = dict(zip(column(made, "batch"), column(made, "fits at full length"), strict=True))
    assert all(word == ("yes" if batch <= held.max_concurrency else "no") for batch, word in fits.items())


def test_the_shares_of_time_are_whole_and_the_evaluations(name: str, answered: Answer) -> None:
    made, measures = chart(name, "time"), answered.evaluation.measures
    for of, total in (
        ("answer", measures.serving.total_latency_s.ceiling),
        ("prefill", measures.prefill.ceiling_s),
        ("one decode step", measures.decode.ceiling_s),
    ):
        mine = [r for r in made.table.rows if r[0] == of]
        assert sum(float(r[2]) for r in mine) == pytest.approx(total)
        assert sum(float(r[3]) for r in mine) == pytest.approx(1)
    bars = [sum(t["x"][i] or 0.0 for t in made.figure["data"]) for i in range(3)]
    assert bars == [pytest.approx(1)] * 3
    shares = {t["name"].lower(): t["x"] for t in made.figure["data"]}
    for bar, part, _, share in made.table.rows:
        at = {"answer": 2, "prefill": 1, "one decode step": 0}[str(bar)]
        assert shares[str(part)][at] == pytest.approx(share)


@pytest.mark.parametrize(("binary", "scale"), [(False, GB), (True, GIB)])
def test_the_context_chart_holds_the_evaluations_cache(name: str, answered: Answer, binary: bool, scale: float) -> None:
    made, held = chart(name, "context", binary=binary), answered.evaluation.measures.memory
    deployment, running = answered.evaluation.deployment, held.rank_sequences
    one = traces(made.figure, "One sequence")[0]
    assert column(made, "context (tokens)") == one["x"]
    assert column(made, "one sequence (B)") == pytest.approx([value * scale for value in one["y"]])
    assert column(made, "one sequence (B)") == [held.plan.sequence_bytes(int(tokens)) for tokens in one["x"]]
    assert column(made, f"all {running:,} (B)") == pytest.approx(
        [running * v for v in column(made, "one sequence (B)")]
    )
    here = traces(made.figure, "This scenario")[0]
    assert here["x"] == [deployment.workload.total_tokens]
    assert here["y"][0] * scale == pytest.approx(running * held.gpu_bytes_per_sequence)
    pool = held.per_gpu.kv_pool_bytes
    assert [line["y0"] * scale for line in lines(made.figure, "limit")] == ([pytest.approx(pool)] if pool else [])
    limit = deployment.architecture.max_position
    assert [line["x0"] for line in lines(made.figure, "muted")] == ([limit] if limit else [])
    for context, fits in zip(column(made, "context (tokens)"), column(made, "fits the pool"), strict=True):
        if not held.context_is_endless:
            assert fits == ("yes" if context <= held.max_context_tokens else "no")


def test_summaries_name_the_evaluations_numbers(name: str, answered: Answer) -> None:
    measures, deployment = answered.evaluation.measures, answered.evaluation.deployment
    held, served = measures.memory, measures.serving
    roofline = chart(name, "roofline").summary
    assert significant(measures.prefill.intensity_flops_per_byte, 3) in roofline
    assert significant(measures.decode.intensity_flops_per_byte, 3) in roofline
    assert f"{significant(answered.evaluation.rule_of_thumb.ridge_flops_per_byte, 4)} FLOP/B" in roofline
    batch = chart(name, "batch").summary
    assert f"at {held.running_sequences:,} each" in batch
    assert significant(served.output_tokens_per_s_per_user.ceiling, 3) in batch
    assert significant(held.running_sequences / served.tpot_s.ceiling, 3) in batch
    assert (f"full at {held.max_concurrency:,}" if held.max_concurrency else "Not one sequence fits") in batch
    time = chart(name, "time").summary
    assert quantity(served.total_latency_s.ceiling, "s", 3) in time
    steps = deployment.workload.output_tokens / deployment.tokens_per_step
    assert f"{steps:,.0f} steps of {quantity(measures.decode.ceiling_s, 's', 3)}" in time
    for binary in (False, True):
        memory = chart(name, "memory", binary=binary).summary
        assert f"weights take {quantity(held.per_gpu.weights_bytes, 'B', 3, binary=binary)}" in memory
        assert quantity(held.per_gpu.capacity_bytes, "B", 3, binary=binary) in memory
        context = chart(name, "context", binary=binary).summary
        assert f"of {deployment.workload.total_tokens:,} tokens" in context
        assert quantity(held.gpu_bytes_per_sequence, "B", 3, binary=binary) in context
        assert f"{held.max_context_tokens:,} tokens" in context


def test_the_gap_chart_piles_up_to_the_expected_tpot(name: str, answered: Answer) -> None:
    made, tpot = chart(name, "gap"), answered.evaluation.measures.serving.tpot_s
    assert tpot.mid is not None
    piled = [
        length
        for trace in made.figure["data"]
        if trace["type"] == "bar"
        for row, length in zip(trace["y"], trace["x"], strict=True)
        if row == "Expected" and length is not None
    ]
    assert sum(piled) == pytest.approx(1e3 * tpot.mid)
    assert min(piled) >= 0
    parts = dict(zip(column(made, "part of a TPOT"), column(made, "time (s)"), strict=True))
    assert sum(v for k, v in parts.items() if k not in ("rule of thumb", "expected")) == pytest.approx(
        parts["expected"]
    )
    whiskers = traces(made.figure, "Eight cases of ten")
    assert bool(whiskers) is (tpot.low is not None)


def test_a_prefill_on_other_cards_stands_under_their_roof_and_not_under_that_of_decode() -> None:
    answered, made = answers()["apart on two kinds of card"], chart("apart on two kinds of card", "roofline")
    card, prefill = answered.evaluation.deployment.prompt_side.accelerator, answered.evaluation.measures.prefill
    (roof,) = [trace for trace in made.figure["data"] if trace["name"].endswith("which prefills")]
    compute = answered.evaluation.deployment.precision.compute
    assert roof["y"][-1] == card.peak(compute)
    reached = prefill.flops / prefill.ceiling_s
    assert answered.evaluation.deployment.accelerator.peak(compute) < reached <= card.peak(compute)
    assert not [t for t in chart("reference", "roofline").figure["data"] if t["name"].endswith("which prefills")]
