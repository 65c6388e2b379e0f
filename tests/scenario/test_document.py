"""The JSON document that clients rely on: its keys, and that every number in it is the evaluation's."""

import json
from dataclasses import asdict
from typing import Any

import pytest

from app.checkpoint.text import dumps
from app.scenario.document import document, headline, number_at
from tests.factories import answer_to, shipped_catalog

KEYS = {
    "": "scenario catalog_version formula_version verdict rule_of_thumb memory prefill decode roofline serving cost "
    "levers explanations warnings",
    "verdict": "state limiter sentence",
    "rule_of_thumb": "ridge_flops_per_byte prefill_flops prefill_s decode_step_s decode_tokens_per_s "
    "decode_intensity_flops_per_byte compute_idle_fraction kv_bytes_per_token kv_step_s kv_tokens_per_s "
    "kv_capacity_tokens kv_capacity_users total_latency_s",
    "memory": "per_gpu kv_bytes_per_sequence kv_bytes_per_token kv_pool_tokens max_concurrency max_context_tokens",
    "memory.per_gpu": "capacity_bytes weights_bytes kv_pool_bytes activation_bytes overhead_bytes free_bytes",
    "prefill": "flops bytes intensity_flops_per_byte bound ceiling_s expected_s",
    "decode": "flops bytes intensity_flops_per_byte bound ceiling_s expected_s",
    "prefill.expected_s": "low mid high",
    "roofline": "roofs points",
    "serving": "ttft_s tpot_s total_latency_s output_tokens_per_s output_tokens_per_s_per_user total_tokens_per_s",
    "serving.ttft_s": "ceiling low mid high",
    "cost": "usd_per_million_output_tokens usd_per_hour joules_per_output_token",
}


def reference() -> dict[str, Any]:
    return document(answer_to())


@pytest.mark.parametrize("path", KEYS)
def test_the_keys_that_clients_rely_on_are_there(path: str) -> None:
    table = number_at(reference(), path) if path else reference()
    assert set(KEYS[path].split()) <= set(table)


def test_lists_hold_tables_of_known_keys() -> None:
    found = reference()
    point = {"phase", "operator", "flops", "bytes", "intensity_flops_per_byte", "bound", "time_s"}
    assert all(set(one) == point for one in found["roofline"]["points"])
    explanation = {"id", "label", "formula", "substituted", "terms", "value", "unit", "source"}
    assert all(set(one) == explanation for one in found["explanations"])
    assert all({"change", "label", "effect"} == set(one) for one in found["levers"])
    assert all({"code", "message"} == set(one) for one in found["warnings"])
    for lever in found["levers"]:
        for pair in lever["effect"].values():
            assert set(pair) == {"before", "after"}


def test_it_is_plain_json_without_nan_and_comes_back_the_same() -> None:
    found = reference()
    assert json.loads(dumps(found)) == found
    assert {type(one) for one in walk(found)} <= {str, int, float, bool, type(None)}


def walk(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [one for inner in value.values() for one in walk(inner)]
    if isinstance(value, list):
        return [one for inner in value for one in walk(inner)]
    return [value]


def test_every_number_is_the_one_of_the_evaluation() -> None:
    answered = answer_to()
    found, measures = document(answered), answered.evaluation.measures
    assert found["scenario"] == answered.scenario.document()
    assert found["rule_of_thumb"] == asdict(answered.evaluation.rule_of_thumb)
    assert found["memory"]["per_gpu"] == asdict(measures.memory.per_gpu)
    for key in (
        "kv_bytes_per_sequence",
        "kv_bytes_per_token",
        "kv_pool_tokens",
        "max_concurrency",
        "max_context_tokens",
    ):
        assert found["memory"][key] == getattr(measures.memory, key)
    for phase, cost in (("prefill", measures.prefill), ("decode", measures.decode)):
        for key in ("flops", "bytes", "ceiling_s", "overlapped_s", "intensity_flops_per_byte"):
            assert found[phase][key] == getattr(cost, key)
        assert found[phase]["bound"] == cost.bound.value
    for key, table in found["serving"].items():
        estimate = getattr(measures.serving, key)
        assert table == {side: getattr(estimate, side) for side in ("ceiling", "low", "mid", "high")}
        assert None not in table.values()
    assert found["decode"]["expected_s"]["mid"] == measures.decode_s.mid
    assert sum(found["expected"]["tpot_causes_s"].values()) == pytest.approx(measures.serving.tpot_s.mid)
    assert measures.cost is not None
    assert found["cost"] == asdict(measures.cost)
    assert found["verdict"] == {
        "state": "fits",
        "limiter": "memory_bandwidth",
        "sentence": answered.evaluation.verdict.sentence,
    }


def test_decode_says_of_how_many_sequences_and_at_which_context_it_is() -> None:
    found = reference()["decode"]
    assert (found["concurrency"], found["context_tokens"]) == (64, 1250)


def test_the_roofline_has_a_roof_for_each_rate_and_a_point_for_each_operator() -> None:
    found = reference()["roofline"]
    rates = shipped_catalog().devices["h100-sxm-80gb"].peak_flops_per_s
    assert [roof["dtype"] for roof in found["roofs"]] == [rate.value for rate in rates]
    assert [roof["dtype"] for roof in found["roofs"] if roof["selected"]] == ["bf16"]
    for roof in found["roofs"]:
        assert roof["ridge_flops_per_byte"] == roof["peak_flops_per_s"] / roof["bandwidth_bytes_per_s"]
    for phase in ("prefill", "decode"):
        whole, *parts = [point for point in found["points"] if point["phase"] == phase]
        assert whole["operator"] == "all"
        assert len({part["operator"] for part in parts}) == len(parts) == 8
        for key in ("flops", "bytes", "time_s"):
            assert sum(part[key] for part in parts) == pytest.approx(whole[key], rel=1e-12)
        for point in (whole, *parts):
            assert point["intensity_flops_per_byte"] == point["flops"] / point["bytes"]


def test_no_point_lies_above_its_roof() -> None:
    found = reference()["roofline"]
    peak = max(roof["peak_flops_per_s"] for roof in found["roofs"])
    bandwidth = found["roofs"][0]["bandwidth_bytes_per_s"]
    for point in found["points"]:
        attained = point["flops"] / point["time_s"]
        assert attained <= min(peak, point["intensity_flops_per_byte"] * bandwidth) * (1 + 1e-12)


def test_without_price_and_power_cost_is_null() -> None:
    assert document(answer_to(hardware="trainium1"))["cost"] is None


def test_the_warnings_are_all_notices_of_the_answer() -> None:
    answered = answer_to("phi-3-mini", "rtx-4090")
    told = [(one["code"], one["message"]) for one in document(answered)["warnings"]]
    assert told == [(notice.code, notice.message) for notice in answered.notices]


def test_what_a_saved_link_remembers_is_every_explained_number() -> None:
    found = reference()
    remembered = headline(found)
    assert len(remembered) == len(found["explanations"])
    for path, value in remembered.items():
        assert number_at(found, path) == value


def test_a_number_is_found_at_its_path() -> None:
    found = reference()
    assert number_at(found, "serving.ttft_s.ceiling") == found["serving"]["ttft_s"]["ceiling"]
    assert number_at(found, "memory") is found["memory"]


@pytest.mark.parametrize(
    "path",
    [
        "",
        "nothing",
        "memory.nothing",
        "serving.ttft_s.",
        ".memory",
        "memory.max_concurrency.more",
        "verdict.state.value",
        "levers.0",
        "levers.label",
    ],
)
def test_a_path_that_is_not_there_is_a_key_error(path: str) -> None:
    with pytest.raises(KeyError):
        number_at(reference(), path)


def test_a_path_into_a_part_that_is_null_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        number_at(document(answer_to(hardware="trainium1")), "cost.usd_per_hour")
