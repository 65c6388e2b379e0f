"""One scenario in, every number out: the reference case, the keys clients rely on, and the same by query string."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.features.workbench.schemas import Evaluation
from app.scenario.document import number_at
from app.scenario.scenario import Scenario
from app.web.urls import API, evaluate_api, scenario_items
from tests.factories import custom_card, scenario_document
from tests.features.problems import paths, problem

EVALUATE = f"{API}/evaluate"
A_THOUSANDTH = 1e-3
PARTS = {
    "rule_of_thumb": {
        "ridge_flops_per_byte",
        "prefill_flops",
        "prefill_s",
        "decode_step_s",
        "decode_tokens_per_s",
        "decode_intensity_flops_per_byte",
        "compute_idle_fraction",
        "kv_bytes_per_token",
        "kv_step_s",
        "kv_tokens_per_s",
        "kv_capacity_tokens",
        "kv_capacity_users",
        "total_latency_s",
    },
    "verdict": {"state", "limiter", "sentence"},
    "memory": {
        "per_gpu",
        "kv_bytes_per_sequence",
        "kv_bytes_per_token",
        "kv_pool_tokens",
        "max_concurrency",
        "max_context_tokens",
        "budget_bytes",
        "needed_bytes",
        "seen_bytes",
        "held_back_bytes",
        "kv_pool_interval_bytes",
        "kv_pool_tokens_interval",
        "max_concurrency_interval",
        "overheads",
        "log_lines",
        "stages",
    },
    "memory.per_gpu": {
        "capacity_bytes",
        "weights_bytes",
        "kv_pool_bytes",
        "activation_bytes",
        "overhead_bytes",
        "free_bytes",
    },
    "prefill": {"flops", "bytes", "intensity_flops_per_byte", "bound", "ceiling_s", "expected_s"},
    "decode": {"flops", "bytes", "intensity_flops_per_byte", "bound", "ceiling_s", "expected_s"},
    "prefill.expected_s": {"low", "mid", "high"},
    "roofline": {"roofs", "points"},
    "cost": {"usd_per_million_output_tokens", "usd_per_hour", "joules_per_output_token"},
    "serving": {
        "ttft_s",
        "tpot_s",
        "total_latency_s",
        "output_tokens_per_s",
        "output_tokens_per_s_per_user",
        "total_tokens_per_s",
    },
    "serving.ttft_s": {"ceiling", "low", "mid", "high"},
}
TOP = {
    "scenario",
    "catalog_version",
    "formula_version",
    "verdict",
    "rule_of_thumb",
    "memory",
    "expected",
    "prefill",
    "decode",
    "roofline",
    "serving",
    "goodput",
    "techniques",
    "cost",
    "levers",
    "explanations",
    "warnings",
    "comparison",
}
VARIETY: list[dict[str, Any]] = [
    scenario_document(),
    scenario_document(workload={"prompt_tokens": 32_000, "concurrency": 500}),
    scenario_document(workload={"concurrency": None, "slo_ttft_s": 0.1, "slo_tpot_s": 0.01}),
    scenario_document("llama-3.1-70b", "rtx-4090", precision={"weights": "int4", "kv_cache": "fp8"}),
    scenario_document(hardware={"custom": custom_card()}),
    scenario_document(hardware={"custom": custom_card(name="Mine", usd_per_hour=2.5, tdp_w=300)}),
    scenario_document(engine={"kv_pool_bytes": 5e10, "max_num_seqs": 7, "max_model_len": 900}, memory_basis="marketed"),
    scenario_document(engine={"id": "ideal", "memory_utilization": 0.5}),
    scenario_document(
        "deepseek-v3",
        "h200-sxm",
        parallelism={"tensor": 4, "pipeline": 2, "decode_context": 4},
        engine={"id": "sglang"},
    ),
    scenario_document("deepseek-v3", "h200-sxm", parallelism={"tensor": 2, "data": 8, "expert": 16}),
    scenario_document("qwen3.5-27b", engine={"id": "llama.cpp", "max_num_seqs": 2, "weights_bytes": 2e10}),
    scenario_document(
        "llama-3.1-70b",
        {"id": "h200-sxm", "count": 8},
        parallelism={"tensor": 2},
        engine={"id": "tensorrt-llm", "activation_bytes": 3e9},
        techniques={"speculative": {"draft_tokens": 3, "draft": {"id": "llama-3.2-1b"}}},
    ),
]


def evaluation(client: TestClient, **sections: Any) -> dict[str, Any]:
    response = client.post(EVALUATE, json=scenario_document(**sections))
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, (int, float)):
        yield value


def test_one_user_of_the_reference_case(calculator: TestClient) -> None:
    rule = evaluation(calculator, workload={"prompt_tokens": 1000, "output_tokens": 500, "concurrency": 1})[
        "rule_of_thumb"
    ]
    told = {
        "ridge_flops_per_byte": 989e12 / 3.35e12,
        "prefill_flops": 16.06e12,
        "prefill_s": 16.06e12 / 989e12,
        "decode_step_s": 16.06e9 / 3.35e12,
        "decode_tokens_per_s": 208.6,
        "decode_intensity_flops_per_byte": 1,
        "kv_bytes_per_token": 131_072,
        "total_latency_s": 16.06e12 / 989e12 + 500 * 16.06e9 / 3.35e12,
    }
    assert {key: rule[key] for key in told} == pytest.approx(told, rel=A_THOUSANDTH)
    assert 0.996 < rule["compute_idle_fraction"] < 0.997


@pytest.mark.parametrize(("prompt", "output"), [(3596, 500), (3840, 256)])
def test_64_users_at_4096_tokens(calculator: TestClient, prompt: int, output: int) -> None:
    rule = evaluation(calculator, workload={"prompt_tokens": prompt, "output_tokens": output, "concurrency": 64})[
        "rule_of_thumb"
    ]
    assert rule["kv_step_s"] == pytest.approx(15.05e-3, rel=A_THOUSANDTH)
    assert rule["kv_tokens_per_s"] == pytest.approx(4_252, rel=A_THOUSANDTH)
    assert rule["kv_capacity_tokens"] == pytest.approx(487_800, rel=1e-4)
    assert rule["kv_capacity_users"] == 119
    assert rule["decode_tokens_per_s"] == pytest.approx(13_350, rel=A_THOUSANDTH)


def test_512_users_reach_the_roof_of_the_arithmetic(calculator: TestClient) -> None:
    rule = evaluation(calculator, workload={"concurrency": 512})["rule_of_thumb"]
    assert rule["decode_step_s"] == pytest.approx(2 * 8.03e9 * 512 / 989e12, rel=A_THOUSANDTH)
    assert rule["decode_tokens_per_s"] == pytest.approx(61_600, rel=A_THOUSANDTH)
    assert rule["decode_tokens_per_s"] / 512 == pytest.approx(120, abs=0.5)
    assert rule["compute_idle_fraction"] == pytest.approx(0, abs=1e-9)


def test_ceilings_of_the_reference_case(calculator: TestClient) -> None:
    one = evaluation(calculator, workload={"prompt_tokens": 1000, "output_tokens": 500, "concurrency": 1})
    assert 14.3e-3 <= one["prefill"]["ceiling_s"] <= 14.8e-3
    assert one["prefill"]["bound"] == "compute"
    # 15.01 GB of weights and 1,250 tokens of cache; the sum of the operators.
    assert one["decode"]["ceiling_s"] == pytest.approx(4.53e-3, abs=0.01e-3)
    alone = evaluation(calculator, workload={"prompt_tokens": 3840, "output_tokens": 512, "concurrency": 1})
    many = evaluation(calculator, workload={"prompt_tokens": 3840, "output_tokens": 512, "concurrency": 64})
    assert alone["decode"]["context_tokens"] == many["decode"]["context_tokens"] == 4096
    assert alone["decode"]["ceiling_s"] == pytest.approx(4.64e-3, abs=0.005e-3)
    assert 14.70e-3 <= many["decode"]["ceiling_s"] <= 14.95e-3
    assert many["decode"]["bound"] == "memory_bandwidth"


@pytest.mark.parametrize("posted", VARIETY)
def test_every_key_that_clients_rely_on_is_there(calculator: TestClient, posted: dict[str, Any]) -> None:
    body = calculator.post(EVALUATE, json=posted).json()
    assert set(body) == TOP
    for path, keys in PARTS.items():
        if path != "cost" or body["cost"] is not None:
            assert keys <= set(number_at(body, path)), path
    for served in PARTS["serving"]:
        assert set(body["serving"][served]) == {"ceiling", "low", "mid", "high"}
    phases = {(point["phase"], point["operator"]) for point in body["roofline"]["points"]}
    assert {("prefill", "all"), ("decode", "all")} < phases
    for explanation in body["explanations"]:
        assert set(explanation) == {"id", "label", "formula", "substituted", "terms", "value", "unit", "source"}
        assert all(set(term) == {"symbol", "label", "value", "unit"} for term in explanation["terms"])
    assert all(set(notice) == {"code", "message"} for notice in body["warnings"])
    assert all(set(lever) == {"change", "label", "effect"} for lever in body["levers"])


@pytest.mark.parametrize("posted", VARIETY)
def test_every_explanation_stands_at_the_path_of_its_number(calculator: TestClient, posted: dict[str, Any]) -> None:
    body = calculator.post(EVALUATE, json=posted).json()
    ids = [explanation["id"] for explanation in body["explanations"]]
    assert len(set(ids)) == len(ids) >= 15
    for explanation in body["explanations"]:
        assert number_at(body, explanation["id"]) == explanation["value"], explanation["id"]
        assert explanation["source"]


@pytest.mark.parametrize("posted", VARIETY)
def test_the_answer_is_what_the_documentation_promises(calculator: TestClient, posted: dict[str, Any]) -> None:
    body = calculator.post(EVALUATE, json=posted).json()
    assert Evaluation.model_validate(body).model_dump(mode="json") == body  # no key more, none less
    assert all(math.isfinite(number) for number in numbers(body))


@pytest.mark.parametrize("posted", VARIETY)
def test_the_parts_of_memory_add_up(calculator: TestClient, posted: dict[str, Any]) -> None:
    card = calculator.post(EVALUATE, json=posted).json()["memory"]["per_gpu"]
    assert sum(card.values()) - card["capacity_bytes"] == pytest.approx(card["capacity_bytes"], rel=1e-12)


@pytest.mark.parametrize("posted", VARIETY)
def test_the_normalised_scenario_gives_the_same_again(calculator: TestClient, posted: dict[str, Any]) -> None:
    first = calculator.post(EVALUATE, json=posted).json()
    again = calculator.post(EVALUATE, json=first["scenario"])
    assert again.json() == first


@pytest.mark.parametrize("posted", VARIETY)
def test_the_query_string_gives_the_same_document(calculator: TestClient, posted: dict[str, Any]) -> None:
    by_body = calculator.post(EVALUATE, json=posted).json()
    scenario = Scenario.model_validate(by_body["scenario"])
    by_query = calculator.get(evaluate_api(scenario_items(scenario, "gib")))
    assert by_query.status_code == 200
    assert by_query.json() == by_body


def test_short_query_takes_the_defaults(calculator: TestClient) -> None:
    by_query = calculator.get(f"{EVALUATE}?model=llama-3.1-8b&hw=h100-sxm-80gb&batch=1")
    assert by_query.json() == evaluation(calculator, workload={"concurrency": 1})


@pytest.mark.parametrize("units", ["gb", "gib"])
def test_query_may_carry_the_units_of_the_page(calculator: TestClient, units: str) -> None:
    by_query = calculator.get(f"{EVALUATE}?model=llama-3.1-8b&hw=h100-sxm-80gb&units={units}")
    assert by_query.json() == evaluation(calculator)


def test_a_misspelt_query_name_is_not_answered_with_a_default(calculator: TestClient) -> None:
    query = "model=llama-3.1-8b&hw=h100-sxm-80gb&bacth=1&promt=2"
    assert paths(calculator.get(f"{EVALUATE}?{query}")) == ["bacth", "promt"]


def test_every_wrong_field_is_named_at_once(calculator: TestClient) -> None:
    posted = {
        "schema_version": 2,
        "model": {"id": "Llama"},
        "hardware": {"custom": {"memory_gb": -1, "dense_tflops": {"bf17": 1}}, "count": 1.5},
        "precision": {"weights": "bf15"},
        "workload": {"prompt_tokens": 0, "output_tokens": "7", "concurrency": True, "batch": 1},
    }
    assert paths(calculator.post(EVALUATE, json=posted)) == [
        "schema_version",
        "model.id",
        "hardware.custom.memory_gb",
        "hardware.custom.bandwidth_gb_per_s",
        "hardware.custom.dense_tflops.bf17",
        "hardware.count",
        "precision.weights",
        "workload.prompt_tokens",
        "workload.output_tokens",
        "workload.concurrency",
        "workload.batch",
    ]


def test_what_the_catalog_does_not_have_is_named_together_with_a_hint(calculator: TestClient) -> None:
    posted = scenario_document("llama-3.1-9b", "h100-sxm", engine={"id": "vlm"}, parallelism={"data": 2})
    posted["techniques"] = {"speculative": {"draft_tokens": 2, "draft": {"id": "qwen3-0.7b"}}}
    response = calculator.post(EVALUATE, json=posted)
    assert paths(response) == ["model.id", "hardware.id", "engine.id", "techniques.speculative.draft.id"]
    hints = {error["path"]: error["message"] for error in response.json()["errors"]}
    assert "h100-sxm-80gb" in hints["hardware.id"]
    assert "llama-3.1-8b" in hints["model.id"]
    assert "vllm" in hints["engine.id"]


@pytest.mark.parametrize(
    ("sections", "path"),
    [
        ({"parallelism": {"pipeline": 33}}, "parallelism.pipeline"),
        ({"parallelism": {"tensor": 2, "expert": 2}}, "parallelism.expert"),
        ({"parallelism": {"tensor": 4, "decode_context": 3}}, "parallelism.decode_context"),
        ({"parallelism": {"tensor": 3}}, "parallelism.tensor"),
        ({"hardware": {"id": "h100-sxm-80gb", "count": 3}, "parallelism": {"data": 2}}, "hardware.count"),
        ({"engine": {"underneath": "sglang"}}, "engine.underneath"),
        (
            {"techniques": {"disaggregation": {"hardware": {"id": "no-such-card"}}}},
            "techniques.disaggregation.hardware.id",
        ),
        ({"techniques": {"chunked_prefill": "always"}}, "techniques.chunked_prefill"),
        (
            {
                "parallelism": {"tensor": 4},
                "techniques": {"speculative": {"draft_tokens": 2, "draft": {"id": "qwen2.5-0.5b"}}},  # 14 heads
            },
            "techniques.speculative.draft",
        ),
    ],
)
def test_what_cannot_be_computed_is_refused_by_name(
    calculator: TestClient, sections: dict[str, Any], path: str
) -> None:
    assert paths(calculator.post(EVALUATE, json=scenario_document(**sections))) == [path]


def test_a_scenario_that_does_not_fit_is_a_normal_answer(calculator: TestClient) -> None:
    body = calculator.post(EVALUATE, json=scenario_document("llama-3.1-405b")).json()
    assert (body["verdict"]["state"], body["verdict"]["limiter"]) == ("does_not_fit", "capacity")
    assert body["memory"]["per_gpu"]["free_bytes"] < 0
    assert body["memory"]["max_concurrency"] == 0
    assert body["decode"]["ceiling_s"] > 0


def test_a_context_beyond_the_model_is_a_warning(calculator: TestClient) -> None:
    body = evaluation(calculator, workload={"prompt_tokens": 200_000, "concurrency": 1})
    assert any("131,072" in notice["message"] for notice in body["warnings"])


def test_a_get_without_anything_names_what_is_needed(calculator: TestClient) -> None:
    assert paths(calculator.get(EVALUATE)) == ["model", "hardware"]
    assert "detail" in problem(calculator.get(EVALUATE), 422)
