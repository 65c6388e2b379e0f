"""The engine of a scenario: its own defaults written out, whose rules divide the card, and what does not fit it."""

from typing import Any

import pytest

from app.calc.memory.engines.ideal import IdealPolicy
from app.calc.memory.engines.llama_cpp import LlamaCppPolicy
from app.calc.memory.engines.parts import Given
from app.calc.memory.engines.sglang import SglangPolicy
from app.calc.memory.engines.tensorrt_llm import TensorRtLlmPolicy
from app.calc.memory.engines.vllm import VllmPolicy
from app.scenario.refusal import ScenarioError
from app.scenario.resolve import Resolved, resolve
from tests.factories import custom_card, scenario, shipped_catalog

CATALOG = shipped_catalog()


def resolved(engine: dict[str, Any] | None = None, *asked: Any, **sections: Any) -> Resolved:
    return resolve(scenario(*asked, engine=engine or {}, **sections), CATALOG)


def written(engine: dict[str, Any], *asked: Any, **sections: Any) -> tuple[Any, ...]:
    """Share, step, block and prefix caching of the normalised scenario."""
    found = resolved(engine, *asked, **sections).scenario.engine
    return found.memory_utilization, found.max_batched_tokens, found.block_size, found.prefix_caching


def refused(engine: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ScenarioError) as caught:
        resolved(engine)
    return {refusal.path: refusal.message for refusal in caught.value.refusals}


@pytest.mark.parametrize(
    ("engine", "defaults"),
    [
        # Sources: vLLM's engine arguments on a card of 70 GiB and more; SGLang's reserve of 512, 1.5 × 8,192, 128 and
        # 512 of 81,559 MiB; TensorRT-LLM's blocks of 32; llama.cpp's micro-batch and cells.
        ("vllm", (0.9, 8192, 16, True)),
        ("sglang", (0.835, 8192, 1, True)),
        ("tensorrt-llm", (0.9, 8192, 32, True)),
        ("llama.cpp", (1.0, 512, 256, True)),
        ("llm-d", (0.9, 8192, 16, True)),
        ("deepinfer", (0.9, 8192, 16, True)),
        ("ideal", (0.9, 8192, 1, True)),
    ],
)
def test_the_defaults_of_each_engine_are_written_out(engine: str, defaults: tuple[Any, ...]) -> None:
    assert written({"id": engine}) == defaults
    assert round((81_559 - 512 - 12_288 - 128 - 512) / 81_559, 3) == 0.835


@pytest.mark.parametrize(
    ("hardware", "step", "sequences"),
    [
        ("h100-sxm-80gb", 8192, 1024),
        ("b200-sxm", 8192, 1024),
        ("mi300x", 8192, 1024),  # vllm#53961: the larger default batch is for this card too
        ("a100-sxm-80gb", 2048, 256),  # as large, but left out by name
        ("rtx-4090", 2048, 256),
        ("l40s", 2048, 256),
    ],
)
def test_a_large_card_gets_a_larger_batch(hardware: str, step: int, sequences: int) -> None:
    found = resolved({}, "llama-3.1-8b", hardware)
    assert found.scenario.engine.max_batched_tokens == found.deployment.engine.step_tokens == step
    assert found.deployment.engine.profiled_seqs == sequences
    assert found.scenario.engine.max_num_seqs is None  # sizes buffers, and caps nothing


def test_the_oldest_releases_know_no_cards() -> None:
    assert resolved({"version": "0.6.3"}).deployment.engine.step_tokens == 2048
    assert resolved({"version": "0.8.0"}).deployment.engine.step_tokens == 8192


@pytest.mark.parametrize(
    ("model", "version", "caches"),
    [
        ("llama-3.1-8b", "0.6.3", True),
        ("llama-3.1-8b", None, True),
        ("qwen3.5-27b", "0.19.0", False),  # states are not cached for reuse by default
        ("qwen3.5-27b", None, True),
    ],
)
def test_prefixes_are_cached_by_default_where_the_release_does(model: str, version: str | None, caches: bool) -> None:
    found = resolved({"version": version}, model)
    assert found.scenario.engine.prefix_caching is found.deployment.engine.prefix_caching is caches
    for asked in (True, False):
        assert resolved({"version": version, "prefix_caching": asked}, model).deployment.engine.prefix_caching is asked


def test_latents_have_longer_blocks() -> None:
    for model, block in (("deepseek-v3", 64), ("deepseek-v3.2", 64), ("llama-3.1-8b", 16)):
        assert resolved({}, model).deployment.engine.block_tokens == block
    assert resolved({"block_size": 128}, "deepseek-v3").deployment.engine.block_tokens == 128


@pytest.mark.parametrize(
    ("hardware", "split", "share"),
    [
        # (memory − 512 − 1.5 × step − 1,024 × GPUs ÷ 8 − 2 × largest graph batch) ÷ memory, in MiB
        ("rtx-4090", {}, round((24_564 - 512 - 1.5 * 2048 - 128 - 2 * 24) / 24_564, 3)),
        ("l40s", {"tensor": 4}, round((46_068 - 512 - 1.5 * 8192 - 512 - 2 * 512) / 46_068, 3)),
        ("h100-sxm-80gb", {"tensor": 8}, round((81_559 - 512 - 1.5 * 8192 - 1024 - 2 * 512) / 81_559, 3)),
        ("h800-sxm-80gb", {"tensor": 16}, 0.805),  # as a start-up log has it
        ("h200-sxm", {"tensor": 4, "pipeline": 2}, round((143_771 - 512 - 1.5 * 8192 - 1024 - 2 * 512) / 143_771, 3)),
    ],
)
def test_sglang_reserves_by_step_graphs_and_split(hardware: str, split: dict[str, int], share: float) -> None:
    found = resolved({"id": "sglang"}, "llama-3.1-8b", hardware, parallelism=split)
    assert found.scenario.engine.memory_utilization == found.deployment.engine.memory_utilization == share


def test_sglang_by_its_logs() -> None:
    """0.847 on an RTX 4090 is printed; a large card with a short step keeps 10 GiB back."""
    assert written({"id": "sglang"}, "llama-3.1-8b", "rtx-4090")[0] == 0.847
    short = written({"id": "sglang", "max_batched_tokens": 2048})[0]
    assert short == round((81_559 - 10_240) / 81_559, 3) == 0.874


def test_a_share_of_a_tiny_card_is_still_a_share() -> None:
    toy = {"custom": custom_card(memory_gb=0.5)}
    assert written({"id": "sglang"}, "llama-3.1-8b", toy)[0] == 0.01


@pytest.mark.parametrize(
    ("engine", "policy"),
    [
        ({}, VllmPolicy),
        ({"id": "sglang"}, SglangPolicy),
        ({"id": "tensorrt-llm"}, TensorRtLlmPolicy),
        ({"id": "llama.cpp"}, LlamaCppPolicy),
        ({"id": "llm-d"}, VllmPolicy),
        ({"id": "llm-d", "underneath": "sglang"}, SglangPolicy),
        ({"id": "deepinfer"}, VllmPolicy),
        ({"id": "ideal"}, IdealPolicy),
    ],
)
def test_whose_rules_divide_the_card(engine: dict[str, Any], policy: type) -> None:
    found = resolved(engine)
    assert isinstance(found.deployment.engine.policy, policy)
    assert found.deployment.engine.id == found.scenario.engine.id == engine.get("id", "vllm")


def test_what_runs_underneath_is_written_out_and_goes_with_llm_d_alone() -> None:
    assert resolved({"id": "llm-d"}).scenario.engine.underneath == "vllm"
    assert resolved({"id": "llm-d", "underneath": "sglang"}).scenario.engine.underneath == "sglang"
    assert resolved({}).scenario.engine.underneath is None
    assert refused({"id": "vllm", "underneath": "sglang"}) == {
        "engine.underneath": "goes with llm-d; vLLM runs by itself."
    }
    for other in ("llama.cpp", "llm-d", "nothing"):
        assert refused({"id": "llm-d", "underneath": other}) == {
            "engine.underneath": f"llm-d runs vllm or sglang, not '{other}'."
        }


def test_llm_d_divides_a_card_as_what_runs_underneath() -> None:
    for underneath in ("vllm", "sglang"):
        alone = resolved({"id": underneath}).deployment.engine
        under = resolved({"id": "llm-d", "underneath": underneath}).deployment.engine
        assert (under.policy, under.memory_utilization) == (alone.policy, alone.memory_utilization)
        assert (under.step_tokens, under.block_tokens) == (alone.step_tokens, alone.block_tokens)


def test_what_is_set_is_kept() -> None:
    asked = {"memory_utilization": 0.5, "max_batched_tokens": 100, "block_size": 32, "prefix_caching": False}
    for engine in ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "ideal"):
        assert written({"id": engine} | asked) == (0.5, 100, 32, False)


def test_guessed_tokens_and_measured_bytes_arrive() -> None:
    found = resolved(
        {"total_memory_bytes": 8e10, "weights_bytes": 0, "activation_bytes": 1.5, "enforce_eager": True},
        techniques={"speculative": {"draft_tokens": 5}},
    ).deployment.engine
    assert (found.draft_tokens, found.is_eager) == (5, True)
    assert found.given == Given(total_memory=8e10, weights=0, activation=1.5)


@pytest.mark.parametrize("engine", CATALOG.engines)
@pytest.mark.parametrize("model", ["llama-3.1-8b", "deepseek-v3", "qwen3.5-27b"])
def test_a_normalised_scenario_asks_the_same(engine: str, model: str) -> None:
    first = resolved({"id": engine}, model, "h200-sxm", parallelism={"tensor": 8 if model == "deepseek-v3" else 1})
    again = resolve(first.scenario, CATALOG)
    assert (again.scenario, again.deployment) == (first.scenario, first.deployment)
