"""Scenarios with any of the techniques at once, on models of every sort."""

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from app.calc.deployment import Deployment
from app.scenario.refusal import ScenarioError
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario
from tests.factories import custom_card, scenario_document, shipped_catalog

DENSE, EXPERTS, LATENT = "llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3"
MODELS = (DENSE, EXPERTS, LATENT, "qwen3.5-35b-a3b", "gemma-3-27b", "gpt-oss-120b", "llama-3.1-70b", "nemotron-h-8b")
WITH_OWN_LAYERS = (LATENT, "qwen3.5-35b-a3b")
CARDS = ("h100-sxm-80gb", "h200-sxm", "b200-sxm", "mi300x", "rtx-4090")
LINKS = ("ethernet-100g", "ib-hdr", "ib-ndr", "ib-xdr", "pcie-5")
SPLITS: tuple[dict[str, int], ...] = (
    {},
    {"tensor": 8},
    {"tensor": 4, "pipeline": 2},
    {"data": 8},
    {"tensor": 2, "data": 4, "expert": 8},
)
Document = dict[str, Any]


def maybe(made: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What is made, or null."""
    return st.none() | made


@st.composite
def speculatives(draw: st.DrawFn, model: str) -> Document:
    """Guesses by whoever can guess for the model, with a rate or a length at any edge."""
    methods = ["ngram", "eagle", "draft_model", *(["mtp"] if model in WITH_OWN_LAYERS else [])]
    method, k = draw(st.sampled_from(methods)), draw(st.integers(1, 8))
    asked: Document = {"method": method, "draft_tokens": k}
    if method == "draft_model":
        asked["draft"] = {"id": "qwen3-0.6b"}
    if draw(st.booleans()):
        return asked | {"acceptance_rate": draw(st.sampled_from([0, 1]) | st.floats(0, 1))}
    return asked | {"acceptance_length": draw(st.sampled_from([1, k + 1]) | st.floats(1, k + 1))}


@st.composite
def pools(draw: st.DrawFn) -> Document:
    """A prefill pool of any card and split."""
    card = draw(st.sampled_from(CARDS))
    hardware: Document = {"id": card}
    if draw(st.integers(0, 5)) == 0:
        hardware = {"custom": custom_card(memory_gb=200, dense_tflops={"bf16": 500, "fp8": 1000})}
    return {
        "hardware": hardware,
        "instances": draw(st.sampled_from([1, 2, 50])),
        "link": draw(st.sampled_from(LINKS)),
        "link_gb_per_s": draw(maybe(st.sampled_from([1e-3, 50.0, 1e6]))),
        "overlap": draw(st.booleans()),
        **draw(st.sampled_from(SPLITS)),
    }


@st.composite
def combined_documents(draw: st.DrawFn) -> Document:
    """A scenario document: every technique may be there."""
    model = draw(st.sampled_from(MODELS))
    speculative = draw(maybe(speculatives(model)))
    prompt, out = draw(st.sampled_from([1, 17, 1000, 30_000])), draw(st.sampled_from([1, 300, 5000]))
    shape = draw(st.sampled_from(["fixed", "uniform", "exponential"]))
    reserved = draw(maybe(st.sampled_from([1, 2048, 40_000])))
    workload = {
        "prompt_tokens": prompt,
        "output_tokens": out,
        "concurrency": draw(st.sampled_from([None, 1, 7, 300, 3000])),
        "prefix_hit_rate": draw(st.sampled_from([0, 0.5, 1])),
        "answer_shape": shape,
        "longest_answer": draw(maybe(st.sampled_from([out, 3 * out]))) if shape == "exponential" else None,
        "shared_prefix_tokens": 0 if reserved else draw(st.sampled_from([0, prompt // 2, prompt])),
        "slo_ttft_s": draw(maybe(st.sampled_from([0.2, 5.0]))),
        "slo_tpot_s": draw(maybe(st.sampled_from([0.02, 0.2]))),
    }
    techniques = {
        "speculative": speculative,
        "disaggregation": draw(maybe(pools())),
        "chunked_prefill": draw(st.booleans()),
        "static_batching": draw(st.booleans()),
        "reserved_tokens": reserved,
        "attention": draw(maybe(st.sampled_from(["mha", "gqa", "mqa", "mla"]))),
    }
    return scenario_document(
        {"id": model, "mtp": speculative is not None and speculative["method"] == "mtp"},
        draw(st.sampled_from(CARDS)),
        workload=workload,
        techniques=techniques,
        parallelism=draw(st.sampled_from(SPLITS)),
        precision={
            "weights": draw(st.sampled_from([None, "bf16", "fp8"])),
            "kv_cache": draw(st.sampled_from(["bf16", "fp8"])),
        },
        engine={"id": draw(st.sampled_from(["vllm", "sglang", "tensorrt-llm", "llama.cpp", "ideal"]))},
    )


@st.composite
def combined(draw: st.DrawFn) -> Deployment:
    """The deployment of such a scenario, as far as its parts go together."""
    try:
        return resolve(Scenario.model_validate(draw(combined_documents())), shipped_catalog()).deployment
    except ScenarioError:
        assume(False)
        raise
