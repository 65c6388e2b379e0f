"""Every explanation computes to its number, names every term it uses, and stands where its id points."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.deployment import Deployment
from app.calc.derivation import FUNCTIONS, Explanation, Term
from app.calc.evaluate import evaluate
from app.calc.memory.engines.parts import Given
from app.scenario.answer import Answer
from app.scenario.document import document, number_at
from tests.calc.divided import POLICIES, divided, givens
from tests.calc.formulas import computed, reread, substituted_value, symbols
from tests.calc.strategies import deployments, repeatable
from tests.factories import answer_to, custom_card, deployment, shipped_catalog

UNITS = {
    "",
    "sequences",
    "B",
    "B/s",
    "FLOP",
    "FLOP/s",
    "FLOP/B",
    "s",
    "tokens",
    "tokens/s",
    "requests/s",
    "$",
    "W",
    "J",
}
EIGHT = {"tensor": 8}
CASES: dict[str, dict[str, Any]] = {
    "reference": {},
    "one user": {"workload": {"concurrency": 1}},
    "saturated": {"workload": {"concurrency": None}},
    "does not fit": {"workload": {"concurrency": 5000}},
    "weights alone do not fit": {"model": "llama-3.1-70b"},
    "weights alone do not fit, saturated": {"model": "llama-3.1-70b", "workload": {"concurrency": None}},
    "measured pool": {"engine": {"kv_pool_bytes": 12_345_678_901.5}},
    "measured pool of one byte": {"engine": {"kv_pool_bytes": 1}},
    "max_num_seqs binds": {"engine": {"max_num_seqs": 3}},
    "max_num_seqs does not bind": {"engine": {"max_num_seqs": 100_000}},
    "max_num_seqs, saturated": {"engine": {"max_num_seqs": 7}, "workload": {"concurrency": None}},
    "windows, beyond": {"model": "gemma-3-27b", "hardware": "h200-sxm", "workload": {"concurrency": 2}},
    "windows, within": {"model": "gemma-3-27b", "workload": {"prompt_tokens": 100, "output_tokens": 10}},
    "windows everywhere": {"model": "mistral-7b-v0.1", "workload": {"concurrency": 2}},
    "windows everywhere, full": {"model": "mistral-7b-v0.1", "workload": {"prompt_tokens": 30_000, "concurrency": 900}},
    "window of 2,047": {"model": "phi-3-mini", "hardware": "rtx-4090"},
    "windows in three of four": {"model": "command-a-111b", "hardware": "mi300x"},
    "int4": {"precision": {"weights": "int4"}},
    "int8": {"precision": {"weights": "int8"}},
    "mxfp4": {"precision": {"weights": "mxfp4"}},
    "nvfp4": {"hardware": "b200-sxm", "precision": {"weights": "nvfp4", "kv_cache": "fp4"}},
    "fp8": {"precision": {"weights": "fp8", "kv_cache": "fp8"}},
    "fp32": {"precision": {"weights": "fp32", "kv_cache": "fp32"}},
    "tf32": {"precision": {"compute": "tf32"}},
    "fp16 only": {"hardware": "v100-sxm2-32gb", "model": "qwen2.5-7b"},
    "no price": {"hardware": "rtx-3090ti"},
    "no power": {"hardware": "inferentia2"},
    "no price, no power": {"hardware": "trainium1"},
    "no driver figure": {"hardware": "mi325x"},
    "marketed": {"memory_basis": "marketed"},
    "prefix": {"workload": {"prefix_hit_rate": 0.7}},
    "all of the prefix": {"workload": {"prefix_hit_rate": 1}},
    "compute-bound decode": {"hardware": "mi300x", "workload": {"concurrency": 1000, "prompt_tokens": 10}},
    "prefills outlast an answer": {"workload": {"prompt_tokens": 8000, "output_tokens": 4}},
    "one token each": {"workload": {"prompt_tokens": 1, "output_tokens": 1, "concurrency": 1}},
    "far too long": {"workload": {"prompt_tokens": 10**8, "output_tokens": 10**8, "concurrency": 10**6}},
    "tied, biases, vision": {"model": "gemma-3-4b"},
    "position table": {"model": "opt-13b"},
    "shared query norm": {"model": "olmo-2-13b"},
    "free custom card": {"hardware": {"custom": custom_card(usd_per_hour=0, tdp_w=350.5)}},
    "plain custom card": {"hardware": {"custom": custom_card()}},
    "toy card": {"hardware": {"custom": custom_card(memory_gb=0.001, bandwidth_gb_per_s=0.001)}},
    "ideal": {"engine": {"id": "ideal"}},
    "ideal, several GPUs": {"model": "llama-3.1-70b", "engine": {"id": "ideal"}, "parallelism": {"tensor": 4}},
    "ideal, context ranks": {
        "model": "deepseek-v3",
        "hardware": "h200-sxm",
        "engine": {"id": "ideal"},
        "parallelism": {"tensor": 8, "decode_context": 4},
    },
    "ideal, windows": {"model": "gemma-3-27b", "engine": {"id": "ideal"}, "workload": {"concurrency": 2}},
    "ideal, states": {"model": "qwen3.5-27b", "engine": {"id": "ideal"}, "hardware": "h200-sxm"},
    "sglang": {"engine": {"id": "sglang"}},
    "sglang, pages": {"engine": {"id": "sglang", "block_size": 64}},
    "sglang, windows": {"model": "gpt-oss-120b", "engine": {"id": "sglang"}},
    "sglang, states": {"model": "qwen3.5-35b-a3b", "hardware": "h200-sxm", "engine": {"id": "sglang"}},
    "sglang, sparse": {
        "model": "deepseek-v3.2",
        "hardware": "b200-sxm",
        "precision": {"kv_cache": "fp8"},
        "engine": {"id": "sglang"},
        "parallelism": {"tensor": 1, "data": 8, "expert": 8},
    },
    "tensorrt-llm": {"engine": {"id": "tensorrt-llm"}},
    "tensorrt-llm, windows": {"model": "gemma-3-27b", "hardware": "h200-sxm", "engine": {"id": "tensorrt-llm"}},
    "tensorrt-llm, states": {"model": "nemotron-h-8b", "engine": {"id": "tensorrt-llm"}},
    "llama.cpp": {"engine": {"id": "llama.cpp"}, "workload": {"concurrency": 4}},
    "llama.cpp, windows": {
        "model": "gemma-3-4b",
        "hardware": "rtx-4090",
        "engine": {"id": "llama.cpp"},
        "precision": {"kv_cache": "int8"},
    },
    "llama.cpp, states": {"model": "qwen3.5-4b", "hardware": "rtx-4090", "engine": {"id": "llama.cpp"}},
    "llm-d": {"engine": {"id": "llm-d"}},
    "llm-d on sglang": {"engine": {"id": "llm-d", "underneath": "sglang"}},
    "deepinfer": {"model": "deepseek-v3", "hardware": "h200-sxm", "engine": {"id": "deepinfer"}, "parallelism": EIGHT},
    "oldest vllm": {"model": "gemma-3-27b", "engine": {"version": "0.6.0"}},
    "vllm that prints blocks": {"model": "qwen3.5-27b", "hardware": "h200-sxm", "engine": {"version": "0.19.0"}},
    "vllm, states": {"model": "qwen3.5-35b-a3b", "hardware": "h200-sxm", "precision": {"kv_cache": "fp8"}},
    "vllm, states and latents": {"model": "kimi-linear-48b-a3b", "hardware": "h200-sxm"},
    "vllm, chunks": {"model": "llama-4-scout", "hardware": "h200-sxm", "parallelism": EIGHT},
    "pipeline": {"model": "deepseek-v3", "hardware": "h200-sxm", "parallelism": {"tensor": 4, "pipeline": 3}},
    "more stages than users": {"parallelism": {"pipeline": 8}, "workload": {"concurrency": 3}},
    "data": {"parallelism": {"data": 3}, "workload": {"concurrency": 100}},
    "experts": {"model": "qwen3-30b-a3b", "parallelism": {"tensor": 2, "data": 4, "expert": 8}},
    "experts by width": {"model": "qwen3-30b-a3b", "parallelism": {"tensor": 2, "data": 2, "expert": 2}},
    "context ranks": {"model": "kimi-k2", "hardware": "h200-sxm", "parallelism": {"tensor": 8, "decode_context": 8}},
    "context ranks, hybrid": {
        "model": "gpt-oss-120b",
        "parallelism": {"tensor": 16, "decode_context": 2},
        "workload": {"concurrency": 5},
    },
    "replicas": {"hardware": {"id": "h100-sxm-80gb", "count": 6}, "parallelism": {"tensor": 2}},
    "fewer users than replicas": {"hardware": {"id": "h100-sxm-80gb", "count": 4}, "workload": {"concurrency": 3}},
    "draft": {
        "model": "llama-3.1-70b",
        "hardware": "h200-sxm",
        "parallelism": {"tensor": 2, "pipeline": 2},
        "techniques": {"speculative": {"draft_tokens": 4, "draft": {"id": "llama-3.2-1b"}}},
    },
    "n-grams": {"techniques": {"speculative": {"draft_tokens": 4}}},
    "draft beside states": {
        "model": "qwen3.5-27b",
        "hardware": "h200-sxm",
        "techniques": {"speculative": {"draft_tokens": 2, "draft": {"id": "qwen3-0.6b"}}},
    },
    "mtp": {"model": {"id": "deepseek-v3", "mtp": True}, "hardware": "h200-sxm", "parallelism": EIGHT},
    "mtp, hybrid": {
        "model": {"id": "qwen3.5-35b-a3b", "mtp": True},
        "hardware": "h200-sxm",
        "techniques": {"speculative": {"draft_tokens": 2}},
    },
    "eagle": {
        "techniques": {"speculative": {"draft_tokens": 3, "method": "eagle", "acceptance_length": 2.8}},
        "workload": {"slo_ttft_s": 1, "slo_tpot_s": 0.02},
    },
    "own layers guess": {
        "model": {"id": "deepseek-v3", "mtp": True},
        "hardware": "h200-sxm",
        "parallelism": {"data": 8, "expert": 8},
        "precision": {"kv_cache": "fp8"},
        "techniques": {"speculative": {"draft_tokens": 1, "acceptance_rate": 0.85}},
    },
    "prefill pool": {
        "techniques": {"disaggregation": {"hardware": {"id": "b200-sxm"}, "instances": 2, "link": "ethernet-100g"}},
        "workload": {"prompt_tokens": 8000, "slo_ttft_s": 2},
    },
    "prefill pool in stages, not overlapped": {
        "model": "llama-3.1-70b",
        "parallelism": {"tensor": 4},
        "techniques": {
            "disaggregation": {"hardware": {"id": "rtx-4090"}, "tensor": 4, "pipeline": 2, "overlap": False}
        },
    },
    "static and spread": {
        "workload": {"answer_shape": "exponential", "longest_answer": 2000, "concurrency": 700},
        "techniques": {"static_batching": True},
    },
    "reserved": {"techniques": {"reserved_tokens": 32_000}, "workload": {"concurrency": 3}},
    "reserved more than there is": {"techniques": {"reserved_tokens": 10**7}, "workload": {"concurrency": 3}},
    "shared": {"workload": {"prompt_tokens": 4000, "shared_prefix_tokens": 3000, "concurrency": None}},
    "shared, windows": {"model": "gemma-3-27b", "workload": {"shared_prefix_tokens": 1000}},
    "whole prompts as latents": {"techniques": {"attention": "mla", "chunked_prefill": False}},
    "everything given": {
        "engine": {
            "total_memory_bytes": 8.4e10,
            "weights_bytes": 1.7e10,
            "activation_bytes": 2e9,
            "non_framework_bytes": 1e9,
            "graph_bytes": 5e8,
        }
    },
    "everything given to sglang": {
        "engine": {"id": "sglang", "total_memory_bytes": 8.4e10, "weights_bytes": 1.7e10, "non_framework_bytes": 1e9}
    },
    "given with a pool": {"engine": {"weights_bytes": 1.7e10, "kv_pool_bytes": 4e10, "activation_bytes": 1e9}},
    "given nothing": {"engine": {"weights_bytes": 0, "activation_bytes": 0, "non_framework_bytes": 0}},
    "eager": {"engine": {"enforce_eager": True, "prefix_caching": False}},
    "large blocks": {"engine": {"block_size": 65_536}},
    "giant card": {"hardware": {"custom": custom_card(memory_gb=1e6, bandwidth_gb_per_s=1e9)}},
}
case = pytest.mark.parametrize("name", CASES)


@cache
def answered(name: str) -> Answer:
    return answer_to(**CASES[name])


def explanations(name: str) -> tuple[Explanation, ...]:
    return answered(name).evaluation.explanations


def check_formula(explanation: Explanation) -> None:
    """What the formula gives is the number; each term is used, and nothing else is."""
    values = {term.symbol: term.value for term in explanation.terms}
    assert len(values) == len(explanation.terms), "a symbol stands for two things"
    assert symbols(explanation.formula) == set(values)
    assert computed(explanation.formula, values) == pytest.approx(explanation.value, rel=1e-12, abs=1e-15)


def one_whole(explanation: Explanation) -> float:
    """What one more block, page or sequence is worth, which rounded numbers may just reach or miss."""
    values = {term.symbol: term.value for term in explanation.terms}
    per_block = values["L"] / values["D"] if {"L", "D"} <= set(values) else 1
    return max(1, per_block, *(values.get(symbol, 1) for symbol in ("n_b", "p", "k", "e")))


def check_substituted(explanation: Explanation, text: str) -> None:
    """No symbol is left; and where digits cannot cancel, even the rounded numbers give the result."""
    left, _, right = text.rpartition(" = ")
    given, (result, unit) = substituted_value(left), reread(right)
    assert unit == explanation.unit
    assert result == pytest.approx(explanation.value, rel=1e-5)
    if "−" not in explanation.formula:
        whole = one_whole(explanation) if "⌊" in explanation.formula else 0
        assert given == pytest.approx(result, rel=5e-5, abs=whole + 5e-5 * abs(result))


@case
def test_each_formula_computes_to_its_number(name: str) -> None:
    for explanation in explanations(name):
        check_formula(explanation)


@case
def test_the_substituted_formula_holds_numbers_only_and_computes(name: str) -> None:
    for explanation in explanations(name):
        check_substituted(explanation, explanation.substituted)
        check_substituted(explanation, explanation.written(binary=True))


@case
def test_ids_are_unique_and_point_at_their_number(name: str) -> None:
    found = document(answered(name))
    ids = [explanation.id for explanation in explanations(name)]
    assert len(set(ids)) == len(ids)
    for explanation in explanations(name):
        assert number_at(found, explanation.id) == explanation.value


@case
def test_units_labels_and_sources_are_given(name: str) -> None:
    for explanation in explanations(name):
        assert explanation.source.strip()
        assert explanation.label.strip()
        assert {explanation.unit, *(term.unit for term in explanation.terms)} <= UNITS
        assert all(term.label.strip() for term in explanation.terms)


@repeatable
@given(deployments())
def test_any_deployment_explains_itself(asked: Deployment) -> None:
    found = evaluate(asked).explanations
    assert len({explanation.id for explanation in found}) == len(found)
    for explanation in found:
        check_formula(explanation)
        substituted_value(explanation.substituted.rpartition(" = ")[0])


@repeatable
@given(deployments(), st.sampled_from(sorted(POLICIES)), st.sampled_from([1, 16, 64]), st.integers(1, 9000))
def test_any_model_under_any_engine_explains_itself(asked: Deployment, name: str, block: int, step: int) -> None:
    engine = replace(asked.engine, id=name, policy=POLICIES[name], block_tokens=block, step_tokens=step)
    for explanation in evaluate(replace(asked, engine=engine)).explanations:
        check_formula(explanation)


@repeatable
@given(divided(given=st.just(Given()) | givens))
def test_any_engine_and_split_explains_itself(asked: Deployment) -> None:
    found = evaluate(asked).explanations
    assert len({explanation.id for explanation in found}) == len(found)
    for explanation in found:
        check_formula(explanation)


@pytest.mark.parametrize("model", shipped_catalog().architectures)
def test_every_model_of_the_catalog_explains_itself(model: str) -> None:
    for explanation in answer_to(model, "b200-sxm", workload={"concurrency": 3}).evaluation.explanations:
        check_formula(explanation)
        check_substituted(explanation, explanation.substituted)


def test_every_number_that_clients_read_is_explained() -> None:
    ids = {explanation.id for explanation in explanations("reference")}
    found = document(answered("reference"))
    assert {f"rule_of_thumb.{key}" for key in found["rule_of_thumb"]} <= ids
    assert {f"serving.{key}.ceiling" for key in found["serving"]} <= ids
    assert {"memory.per_gpu.weights_bytes", "memory.per_gpu.kv_pool_bytes", "memory.max_concurrency"} <= ids
    assert {"prefill.ceiling_s", "decode.ceiling_s", "prefill.intensity_flops_per_byte"} <= ids
    assert {"cost.usd_per_million_output_tokens", "cost.joules_per_output_token"} <= ids


@pytest.mark.parametrize(
    ("name", "price", "energy"),
    [("reference", True, True), ("no price", False, True), ("no price, no power", False, False)],
)
def test_only_known_costs_are_explained(name: str, price: bool, energy: bool) -> None:
    ids = {explanation.id for explanation in explanations(name)}
    assert ("cost.usd_per_million_output_tokens" in ids) is price
    assert ("cost.joules_per_output_token" in ids) is energy


@pytest.mark.parametrize(
    ("id_", "written"),
    [
        ("rule_of_thumb.ridge_flops_per_byte", "989 TFLOP/s ÷ 3.35 TB/s = 295.224 FLOP/B"),
        ("rule_of_thumb.prefill_flops", "2 × 8,030,261,248 × 1,000 tokens = 16.0605 TFLOP"),
        ("memory.kv_bytes_per_sequence", "2 × 32 × 8 × 128 × 2 B × 1,500 tokens = 196.608 MB"),
        ("memory.per_gpu.kv_pool_bytes", "max(0, 85.5208 GB × 0.9 − 16.0605 GB) = 60.9082 GB"),
        ("memory.max_concurrency", "min(⌊60.9082 GB ÷ 196.608 MB⌋, 1,000,000) = 309 sequences"),
    ],
)
def test_the_working_of_the_reference_case_as_it_is_shown(id_: str, written: str) -> None:
    by_id = {explanation.id: explanation for explanation in evaluate(deployment()).explanations}
    assert by_id[id_].substituted == written


def test_bytes_are_binary_where_asked() -> None:
    by_id = {explanation.id: explanation for explanation in evaluate(deployment()).explanations}
    pool = by_id["memory.per_gpu.kv_pool_bytes"]
    assert pool.written(binary=True) == "max(0, 79.6475 GiB × 0.9 − 14.9575 GiB) = 56.7252 GiB"
    assert pool.written(binary=False) == pool.substituted


def test_a_symbol_is_replaced_whole_and_functions_stay() -> None:
    terms = (Term("t", "a", 2, "s"), Term("t_x", "b", 3, "s"), Term("max_x", "c", 4, ""))
    explanation = Explanation("x", "X", "max(t_x, t) + t × max_x", terms, 11, "s", "none")
    assert explanation.substituted == "max(3 s, 2 s) + 2 s × 4 = 11 s"
    assert frozenset({"max", "min"}) == FUNCTIONS
