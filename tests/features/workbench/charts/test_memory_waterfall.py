"""The waterfall: each step starts where the one before it ends, down to the pool that the evaluation has."""

from functools import cache
from typing import Any

import pytest

from app.calc.memory.engines.parts import Part
from app.features.workbench.charts.gallery import CHARTS
from app.features.workbench.charts.memory import MISSING, Kind, Step, memory_steps
from app.scenario.answer import Answer
from app.web.figure import Chart
from tests.factories import answer_to
from tests.features.workbench.charts.cases import answers, workload

GB, GIB = 1e9, 2.0**30
ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "llm-d", "deepinfer", "ideal")
OLD = {"id": "vllm", "version": "0.9.0"}


@cache
def divided() -> dict[str, Answer]:
    """Every engine's division, and what was measured instead."""
    found = {f"by {engine}": answer_to(engine={"id": engine}) for engine in ENGINES}
    found |= {f"too large, by {e}": answer_to("llama-3.1-70b", engine={"id": e}) for e in ENGINES}
    found["graphs outside the share"] = answer_to(engine=OLD)
    found["stages"] = answer_to("llama-3.1-70b", parallelism={"pipeline": 4})
    given = {"activation_bytes": 2e9, "weights_bytes": 16e9, "graph_bytes": 0.0, "total_memory_bytes": 84e9}
    found["given parts"] = answer_to(engine=given)
    found["given pool"] = answer_to(engine={"kv_pool_bytes": 3e10})
    found["given pool, weights beyond the card"] = answer_to("llama-3.1-70b", engine={"kv_pool_bytes": 3e10})
    found["more cache than pool"] = answer_to(workload=workload(30_000, 2_000, 20))
    return {**answers(), **found}


NAMES = tuple(divided())


def steps_of(name: str) -> list[Step]:
    return memory_steps(divided()[name].evaluation.measures.memory)


def drawn(name: str, *, binary: bool = False) -> Chart:
    return CHARTS["memory"](divided()[name].evaluation, binary)


def by_name(steps: list[Step]) -> dict[str, Step]:
    found = {step.name: step for step in steps}
    assert len(found) == len(steps)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_each_step_starts_where_the_one_before_ends(name: str) -> None:
    chain = [step for step in steps_of(name) if not step.is_aside]
    at = chain[0].end.mid
    for step in chain[1:]:
        if step.start != 0.0:
            assert step.start == pytest.approx(at, rel=1e-9, abs=1)
        elif step.name not in (MISSING, "Cache free"):
            assert step.end.mid == pytest.approx(at, rel=1e-9, abs=1)  # a total is what is left so far
        at = step.end.mid


@pytest.mark.parametrize("name", NAMES)
def test_the_steps_are_the_evaluations_numbers(name: str) -> None:
    held, steps = divided()[name].evaluation.measures.memory, by_name(steps_of(name))
    rank = held.tightest
    assert steps["Card"].bytes == held.per_gpu.capacity_bytes
    assert steps["Weights"].bytes == pytest.approx(held.per_gpu.weights_bytes)
    if rank.pool.mid <= 0:
        assert not {"Cache pool", "Cache in use", "Cache free"} & set(steps)
        missing = -rank.pool.mid or held.per_gpu.weights_bytes - held.per_gpu.capacity_bytes
        assert steps[MISSING].bytes == pytest.approx(missing, abs=1)
        return
    cache = held.rank_sequences * held.gpu_bytes_per_sequence + held.shared_bytes
    assert steps["Cache pool"].end == rank.pool
    assert steps["Cache in use" if cache <= rank.pool.mid else "Cache asked for"].bytes == pytest.approx(cache)
    assert (MISSING in steps) == (cache > rank.pool.mid)
    assert steps.get("Cache free", steps.get(MISSING)).bytes == pytest.approx(abs(rank.pool.mid - cache))  # type: ignore[union-attr]
    if not rank.is_pool_given:
        for part, words in ((Part.ACTIVATION, "Activations"), (Part.GRAPHS, "CUDA graphs")):
            overhead = next((o for o in rank.overheads if o.part is part), None)
            if overhead is not None and overhead.bytes.mid > 0:
                assert steps[words].bytes == pytest.approx(overhead.bytes.mid)
                assert steps[words].is_aside is not overhead.is_charged
                assert (steps[words].kind is Kind.GIVEN) == overhead.is_given


def test_what_is_given_looks_given_and_what_is_assumed_has_whiskers() -> None:
    steps, bars = by_name(steps_of("given parts")), {t["name"]: t for t in drawn("given parts").figure["data"]}
    for name in ("Weights", "Activations", "Driver’s part"):
        assert steps[name].kind is Kind.GIVEN
        assert bars[name]["marker"]["pattern"]["shape"] == "-"
        assert "error_x" not in bars[name]
    assert steps["Non-framework"].kind is Kind.ASSUMED
    assert bars["Non-framework"]["marker"]["pattern"]["shape"] == "."
    low, mid, high = steps["Non-framework"].end.sides
    whisker = bars["Non-framework"]["error_x"]
    assert whisker["array"][0] * GB == pytest.approx(high - mid)
    assert whisker["arrayminus"][0] * GB == pytest.approx(mid - low)
    labels = drawn("given parts").figure["layout"]["yaxis"]["ticktext"]
    assert "Weights, given" in labels
    assert "Non-framework" in labels


def test_a_measured_pool_is_divided_from_nothing() -> None:
    assert [step.name for step in steps_of("given pool")] == [
        "Card",
        "Weights",
        "All else",
        "Cache pool",
        "Cache in use",
        "Cache free",
    ]
    assert by_name(steps_of("given pool"))["Cache pool"].kind is Kind.GIVEN


def test_what_is_not_charged_stands_in_the_room_outside() -> None:
    steps = by_name(steps_of("by sglang"))
    share = divided()["by sglang"].evaluation.measures.memory.budget_bytes
    assert steps["Activations"].start == pytest.approx(share)
    assert steps["CUDA graphs"].start == pytest.approx(steps["Activations"].end.mid)
    assert list(steps).index("Non-framework") < list(steps).index("Outside the share")
    assert by_name(steps_of("graphs outside the share"))["CUDA graphs"].is_aside
    assert not by_name(steps_of("by vllm"))["CUDA graphs"].is_aside


def test_an_ideal_engine_assumes_nothing() -> None:
    assert {step.kind for step in steps_of("by ideal")} == {Kind.TOTAL, Kind.OUTSIDE, Kind.KNOWN}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("binary", "scale"), [(False, GB), (True, GIB)])
def test_bars_labels_and_table_are_the_steps(name: str, binary: bool, scale: float) -> None:
    made, steps = drawn(name, binary=binary), steps_of(name)
    bars = [trace for trace in made.figure["data"] if trace["x"] != [None]]
    layout: dict[str, Any] = made.figure["layout"]
    assert [bar["name"] for bar in bars] == [step.name for step in steps]
    for bar, step in zip(bars, steps, strict=True):
        assert bar["base"][0] * scale == pytest.approx(step.start)
        assert bar["x"][0] * scale == pytest.approx(step.end.mid - step.start)
    assert len(layout["yaxis"]["ticktext"]) == len(layout["annotations"]) == len(steps)
    rows = {row[0]: row for row in made.table.rows}
    capacity = divided()[name].evaluation.measures.memory.per_gpu.capacity_bytes
    for step in steps:
        _, size, low, high, share, _ = rows[step.name]
        assert (size, low, high) == (step.bytes, *step.sizes)
        assert share == pytest.approx(step.bytes / capacity)
        assert float(low) <= float(size) <= float(high)
    assert rows["Engine’s share"][1] == divided()[name].evaluation.measures.memory.budget_bytes


def test_a_bar_far_beyond_the_card_is_cut_so_that_the_card_is_seen() -> None:
    low, high = drawn("slowest card").figure["layout"]["xaxis"]["range"]
    assert -2 < low / high < 0
    assert "missing before any cache" in drawn("slowest card").summary


def test_the_summary_names_the_stage_that_is_shown() -> None:
    assert "stage 4 of 4" in drawn("stages").summary
    assert "stage" not in drawn("reference").summary
    assert "less than the" in drawn("more cache than pool").summary
