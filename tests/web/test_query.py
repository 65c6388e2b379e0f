"""A scenario read from a query, and the queries that are refused."""

import pytest
from starlette.datastructures import QueryParams

from app.scenario.refusal import ScenarioError
from app.web.query import MOST_ITEMS, answer_from, items_of, refuse_unknown, scenario_from
from tests.factories import scenario, shipped_catalog

REFERENCE = [("model", "llama-3.1-8b"), ("hw", "h100-sxm-80gb")]


def test_items_keep_their_order_and_their_repetitions() -> None:
    assert items_of(QueryParams("b=1&a=2&b=3&c=")) == [("b", "1"), ("a", "2"), ("b", "3"), ("c", "")]


def test_absurdly_many_items_are_refused() -> None:
    assert len(items_of(QueryParams("&".join(["a=1"] * MOST_ITEMS)))) == MOST_ITEMS
    with pytest.raises(ScenarioError, match="More than 200"):
        items_of(QueryParams("&".join(["a=1"] * (MOST_ITEMS + 1))))


def test_a_query_is_validated_as_any_posted_scenario() -> None:
    assert scenario_from([*REFERENCE, ("batch", "3")]) == scenario(workload={"concurrency": 3})
    with pytest.raises(ScenarioError) as refused:
        scenario_from([*REFERENCE, ("prompt", "0"), ("w", "bf15")])
    assert [refusal.path for refusal in refused.value.refusals] == ["precision.weights", "workload.prompt_tokens"]


def test_names_that_nothing_reads_are_refused_and_cut() -> None:
    refuse_unknown([*REFERENCE, ("units", "gib")], besides=("units",))
    with pytest.raises(ScenarioError) as refused:
        refuse_unknown([("units", "gib"), ("x" * 100, ""), ("units", "gb")])
    assert [refusal.path for refusal in refused.value.refusals] == ["units", "x" * 60]


def test_everything_wrong_is_told_at_once() -> None:
    items = [("model", "nope"), ("hw", "h100"), ("prompt", "-3"), ("batch", "x"), ("w", "bf15"), ("util", "2")]
    with pytest.raises(ScenarioError) as refused:
        answer_from(items, shipped_catalog())
    assert sorted(r.path for r in refused.value.refusals) == [
        "engine.memory_utilization",
        "hardware.id",
        "model.id",
        "precision.weights",
        "workload.concurrency",
        "workload.prompt_tokens",
    ]


def test_what_only_follows_from_a_refused_field_is_not_told() -> None:
    # FP8 arithmetic does not fit the bf16 weights that stand in for the misspelt format.
    with pytest.raises(ScenarioError) as refused:
        answer_from([*REFERENCE, ("w", "fp9"), ("compute", "fp8")], shipped_catalog())
    assert [r.path for r in refused.value.refusals] == ["precision.weights"]


@pytest.mark.parametrize("items", [[], [("model", "nope")], [("hw", "custom"), ("hw_mem", "x")], [("config", "{")]])
def test_what_is_missing_or_wrong_ends_in_a_refusal_without_repeats(items: list[tuple[str, str]]) -> None:
    with pytest.raises(ScenarioError) as refused:
        answer_from(items, shipped_catalog())
    paths = [r.path for r in refused.value.refusals]
    assert paths
    assert len(paths) == len(set(paths))
