"""From ids to facts: what is unknown or not computed is refused at its path, all of it at once."""

from typing import Any

import pytest

from app.calc.accelerator import MemoryBasis
from app.calc.deployment import Observed
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.memory.engines.parts import Draft, Given
from app.calc.model.split import Split
from app.scenario.refusal import Refusal, ScenarioError
from app.scenario.resolve import Resolved, resolve
from app.scenario.scenario import Scenario
from tests.factories import custom_card, scenario, scenario_document, shipped_catalog


def resolved(**sections: Any) -> Resolved:
    return resolve(scenario(**sections), shipped_catalog())


def refusals(**sections: Any) -> dict[str, str]:
    """What is refused and why, by path; a path is refused once."""
    with pytest.raises(ScenarioError) as caught:
        resolved(**sections)
    found = {refusal.path: refusal.message for refusal in caught.value.refusals}
    assert len(found) == len(caught.value.refusals)
    assert str(caught.value) == "; ".join(f"{path}: {message}" for path, message in found.items())
    return found


def test_ids_become_the_facts_of_the_catalog() -> None:
    found = resolved()
    assert found.deployment.architecture == shipped_catalog().architectures["llama-3.1-8b"]
    assert found.deployment.accelerator == shipped_catalog().devices["h100-sxm-80gb"]
    precision = found.deployment.precision
    assert (precision.weights.label, precision.kv_cache, precision.compute) == ("bf16", Dtype.BF16, Dtype.BF16)


def test_every_field_that_is_computed_arrives() -> None:
    found = resolved(
        engine={
            "id": "sglang",
            "memory_utilization": 0.8,
            "max_model_len": 7,
            "max_num_seqs": 6,
            "max_batched_tokens": 5,
            "block_size": 4,
            "prefix_caching": False,
            "enforce_eager": True,
            "total_memory_bytes": 9e10,
            "weights_bytes": 8e10,
            "activation_bytes": 7e9,
            "non_framework_bytes": 6e9,
            "graph_bytes": 4e9,
            "kv_pool_bytes": 5e9,
        },
        parallelism={"tensor": 16, "pipeline": 2, "data": 3, "decode_context": 2},
        hardware={"id": "h100-sxm-80gb", "count": 192},
        techniques={"speculative": {"draft_tokens": 3, "draft": {"id": "llama-3.2-1b"}}},
        observed={"kv_tokens": 1, "gpu_blocks": 2, "max_concurrency": 3.5},
        workload={
            "prompt_tokens": 11,
            "output_tokens": 12,
            "concurrency": None,
            "prefix_hit_rate": 0.25,
            "slo_ttft_s": 0.5,
            "slo_tpot_s": 0.05,
        },
        memory_basis="marketed",
    ).deployment
    engine, work = found.engine, found.workload
    assert (engine.id, engine.memory_utilization, engine.max_model_len) == ("sglang", 0.8, 7)
    assert (engine.max_num_seqs, engine.step_tokens, engine.block_tokens, engine.draft_tokens) == (6, 5, 4, 3)
    assert (engine.prefix_caching, engine.is_eager) == (False, True)
    assert engine.given == Given(9e10, 8e10, 7e9, 6e9, 4e9, 5e9)
    assert (found.split, found.replicas, found.gpus) == (Split(16, 2, 3, 1, 2), 2, 192)
    assert found.draft == Draft(
        shipped_catalog().architectures["llama-3.2-1b"], shipped_catalog().plans["llama-3.2-1b"]
    )
    assert found.observed == Observed(1, 2, 3.5)
    assert (work.prompt_tokens, work.output_tokens, work.concurrency) == (11, 12, None)
    assert (work.prefix_hit_rate, work.slo_ttft_s, work.slo_tpot_s) == (0.25, 0.5, 0.05)
    assert found.memory_basis is MemoryBasis.MARKETED


def test_a_custom_card_is_in_si_units() -> None:
    card = custom_card(
        name="Mine",
        memory_reported_mib=81_559,
        dense_tflops={"fp8": 1979},
        tdp_w=700,
        usd_per_hour=2.5,
        link_one_way_gb_per_s=450,
    )
    found = resolved(hardware={"custom": card}).deployment.accelerator
    assert (found.id, found.name) == ("custom", "Mine")
    assert (found.memory_marketed_bytes, found.memory_reported_bytes) == (80e9, 85_520_809_984)
    assert found.bandwidth_bytes_per_s == 3.35e12
    assert dict(found.peak_flops_per_s) == {Dtype.BF16: 989e12, Dtype.FP8: 1979e12}
    assert (found.tdp_w, found.price_usd_per_hour, found.link_bytes_per_s_one_way) == (700, 2.5, 450e9)
    plain = resolved(hardware={"custom": custom_card()}).deployment.accelerator
    assert (plain.memory_reported_bytes, plain.tdp_w, plain.price_usd_per_hour) == (None, None, None)


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("llama-3.1-8", "Did you mean llama-3.1-8b?"),
        ("lama-3.1-8b", "Did you mean llama-3.1-8b"),
        ("qwen3", "Did you mean qwen3-0.6b or qwen3-1.7b or qwen3-4b?"),
    ],
)
def test_an_unknown_model_is_refused_with_its_neighbours(model: str, hint: str) -> None:
    found = refusals(model=model)
    assert found["model.id"].startswith(f"There is no model '{model}' in the catalog. {hint}")


def test_an_unknown_card_is_refused_with_its_neighbours() -> None:
    message = refusals(hardware="h100")["hardware.id"]
    assert message == (
        "There is no accelerator 'h100' in the catalog. Did you mean h100-pcie-80gb or h100-sxm-80gb or h100-nvl-94gb?"
    )


def test_an_unknown_engine_is_refused_with_its_neighbours_too() -> None:
    message = refusals(engine={"id": "vlm"})["engine.id"]
    assert message == "There is no engine 'vlm' in the catalog. Did you mean vllm or llm-d?"


def test_what_resembles_nothing_gets_no_suggestion() -> None:
    assert refusals(model="zzzzzz") == {"model.id": "There is no model 'zzzzzz' in the catalog."}


@pytest.mark.parametrize(
    ("model", "parallelism", "path", "message"),
    [
        ("llama-3.1-8b", {"pipeline": 33}, "pipeline", "32 layers cannot be cut into 33 pipeline stages."),
        ("llama-3.1-8b", {"tensor": 2, "expert": 2}, "expert", "Llama-3.1-8B has no experts to share out."),
        ("qwen3-30b-a3b", {"tensor": 4, "expert": 3}, "expert", "3 expert groups do not divide 4 GPUs of a stage."),
        ("qwen3-30b-a3b", {"tensor": 2, "data": 2, "expert": 8}, "expert", "8 expert groups do not divide 4 GPUs"),
        (
            "llama-3.1-8b",
            {"tensor": 4, "decode_context": 3},
            "decode_context",
            "3 context ranks do not divide 4 tensor",
        ),
        ("llama-3.1-8b", {"data": 4, "decode_context": 2}, "decode_context", "2 context ranks do not divide 1 tensor"),
        (
            "llama-3.1-8b",
            {"tensor": 8, "decode_context": 8},
            "decode_context",
            "8 context ranks share out copies of a cache, and 8 tensor ranks hold the keys and values of",
        ),
        ("gpt-oss-120b", {"tensor": 16, "decode_context": 4}, "decode_context", "4 context ranks share out copies"),
    ],
)
def test_a_split_that_does_not_divide_is_refused_by_name(
    model: str, parallelism: dict[str, int], path: str, message: str
) -> None:
    ((found, told),) = refusals(model=model, parallelism=parallelism).items()
    assert found == f"parallelism.{path}"
    assert told.startswith(message)


def test_several_splits_that_do_not_divide_are_told_together() -> None:
    found = refusals(parallelism={"tensor": 3, "expert": 2, "decode_context": 2, "pipeline": 40})
    assert set(found) == {f"parallelism.{key}" for key in ("expert", "decode_context", "pipeline")}


def test_more_gpus_in_a_replica_than_are_computed_are_refused() -> None:
    found = refusals(parallelism={"tensor": 1024, "pipeline": 1024})
    assert found == {"parallelism": "1,048,576 GPUs in a replica are more than are computed."}


def test_a_draft_model_must_be_known_divide_and_be_the_only_one_to_guess() -> None:
    def guessing(draft: dict[str, Any], **sections: Any) -> dict[str, str]:
        return refusals(techniques={"speculative": {"draft_tokens": 2, "draft": draft}}, **sections)

    assert set(guessing({"id": "nothing"})) == {"techniques.speculative.draft.id"}
    assert set(guessing({"config": {"model_type": "llama"}})) == {"techniques.speculative.draft.config.hidden_size"}
    undivided = guessing({"id": "qwen2.5-0.5b"}, parallelism={"tensor": 4})
    assert undivided == {"techniques.speculative.draft": "Qwen2.5-0.5B: 14 attention heads do not divide among 4 GPUs."}
    document = scenario_document("deepseek-v3")
    document["model"]["mtp"] = True
    document["techniques"] = {"speculative": {"draft_tokens": 2, "draft": {"id": "qwen3-0.6b"}}}
    with pytest.raises(ScenarioError) as caught:
        resolve(Scenario.model_validate(document), shipped_catalog())
    assert [refusal.path for refusal in caught.value.refusals] == ["techniques.speculative.draft"]


def test_a_count_left_out_is_that_of_one_replica_and_is_written_out() -> None:
    assert resolved().scenario.hardware.count == 1
    assert resolved(parallelism={"tensor": 8}).scenario.hardware.count == 8
    assert resolved(parallelism={"tensor": 4, "pipeline": 2, "data": 3}).scenario.hardware.count == 24
    given = resolved(hardware={"id": "h100-sxm-80gb", "count": 8}, parallelism={"tensor": 8})
    assert (given.deployment.split, given.deployment.replicas) == (Split(8), 1)


def test_a_count_is_whole_replicas() -> None:
    many = resolved(hardware={"id": "h100-sxm-80gb", "count": 24}, parallelism={"tensor": 4, "data": 2})
    assert (many.deployment.replicas, many.deployment.gpus, many.scenario.hardware.count) == (3, 24, 24)
    alone = resolved(hardware={"custom": custom_card(), "count": 8})
    assert (alone.deployment.replicas, alone.deployment.split.gpus) == (8, 1)
    assert refusals(hardware={"id": "h100-sxm-80gb", "count": 6}, parallelism={"tensor": 4, "pipeline": 1}) == {
        "hardware.count": "6 GPUs are no whole number of replicas of 4 (4 tensor × 1 pipeline × 1 data)."
    }
    assert set(refusals(hardware={"id": "h100-sxm-80gb", "count": 4}, parallelism={"tensor": 8})) == {"hardware.count"}


def test_heads_that_do_not_divide_are_refused_by_name() -> None:
    assert refusals(parallelism={"tensor": 3}) == {
        "parallelism.tensor": "32 attention heads do not divide among 3 GPUs."
    }
    assert refusals(model="qwen2.5-7b", parallelism={"tensor": 8, "pipeline": 2}) == {
        "parallelism.tensor": "28 attention heads do not divide among 8 GPUs."
    }


@pytest.mark.parametrize(
    ("model", "asked", "label"),
    [
        ("llama-3.1-8b", None, "bf16"),
        ("llama-2-7b", None, "fp16"),
        ("deepseek-v3", None, "fp8"),
        ("deepseek-v3", "native", "fp8"),
        ("gpt-oss-120b", None, "mxfp4"),
        ("deepseek-v4-flash", None, "native"),
        ("kimi-k2.5", "native", "native"),
        ("deepseek-v3", "bf16", "bf16"),
    ],
)
def test_weights_left_out_are_those_that_are_shipped(model: str, asked: str | None, label: str) -> None:
    found = resolved(model=model, precision={"weights": asked} if asked else {})
    assert found.scenario.precision.weights == label == found.deployment.precision.weights.label


def test_multi_token_prediction_is_loaded_where_there_is_any() -> None:
    document = scenario_document("deepseek-v3")
    document["model"]["mtp"] = True
    loaded = resolve(Scenario.model_validate(document), shipped_catalog()).deployment.architecture
    assert loaded.mtp == shipped_catalog().models["deepseek-v3"].mtp
    document["model"]["id"] = "llama-3.1-8b"
    with pytest.raises(ScenarioError) as caught:
        resolve(Scenario.model_validate(document), shipped_catalog())
    assert caught.value.refusals == (Refusal("model.mtp", "Llama-3.1-8B has no multi-token-prediction layers."),)


def test_all_refusals_are_told_together_at_their_paths() -> None:
    found = refusals(
        model="nothing",
        hardware={"id": "nowhere", "count": 4},
        engine={"id": "nobody"},
        techniques={"speculative": {"draft_tokens": 2, "draft": {"id": "none"}}},
    )
    assert set(found) == {"model.id", "hardware.id", "engine.id", "techniques.speculative.draft.id"}


def test_a_rate_is_judged_as_soon_as_the_card_is_known() -> None:
    found = refusals(model="nothing", precision={"compute": "fp4"})
    assert set(found) == {"model.id", "precision.compute"}


def test_a_config_is_read_and_its_refusal_names_the_key() -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "vocab_size": 1000,
    }

    def with_config(value: dict[str, Any], name: str | None = None) -> Scenario:
        model = {"config": value} | ({"name": name} if name else {})
        return Scenario.model_validate(scenario_document() | {"model": model})

    assert resolve(with_config(config, "Mine"), shipped_catalog()).deployment.architecture.name == "Mine"
    assert resolve(with_config(config), shipped_catalog()).deployment.architecture.name == "Custom model"
    with pytest.raises(ScenarioError) as caught:
        resolve(with_config(config | {"num_local_experts": 8}), shipped_catalog())
    (refusal,) = caught.value.refusals
    assert refusal == Refusal(
        "model.config.num_local_experts", "announces a structure that this family is not computed with."
    )


@pytest.mark.parametrize(
    ("hardware", "weights", "compute"),
    [
        ("h100-sxm-80gb", "bf16", "bf16"),
        ("h100-sxm-80gb", "fp16", "fp16"),
        ("h100-sxm-80gb", "fp32", "fp32"),
        ("h100-sxm-80gb", "fp8", "fp8"),
        ("h100-sxm-80gb", "int8", "bf16"),  # unpacked to 16 bits by its kernels
        ("h100-sxm-80gb", "int4", "bf16"),
        ("h100-sxm-80gb", "mxfp4", "bf16"),  # no FP4 rate
        ("b200-sxm", "mxfp4", "fp4"),
        ("b200-sxm", "nvfp4", "fp4"),
        ("a100-sxm-80gb", "fp8", "bf16"),  # no FP8 rate
        ("v100-sxm2-32gb", "bf16", "fp16"),  # no BF16 rate
        ("v100-sxm2-32gb", "fp8", "fp16"),
        ("t4", "int4", "fp16"),
    ],
)
def test_an_open_choice_of_arithmetic_is_decided_and_written_down(hardware: str, weights: str, compute: str) -> None:
    found = resolved(hardware=hardware, precision={"weights": weights})
    assert found.deployment.precision.compute is Dtype(compute)
    assert found.scenario.document()["precision"]["compute"] == compute
    again = resolve(found.scenario, shipped_catalog())
    assert (again.scenario, again.deployment) == (found.scenario, found.deployment)


@pytest.mark.parametrize("hardware", shipped_catalog().devices)
@pytest.mark.parametrize("weights", WeightFormat)
def test_every_card_has_a_rate_for_the_choice_or_refuses_it_by_name(hardware: str, weights: str) -> None:
    rates = shipped_catalog().devices[hardware].peak_flops_per_s
    try:
        found = resolved(hardware=hardware, precision={"weights": weights})
    except ScenarioError as error:
        (refusal,) = error.refusals
        assert refusal.path == "precision.compute"
        assert "known rates: " in refusal.message
        return
    assert found.deployment.precision.compute in rates


def test_a_card_without_a_rate_for_the_weights_is_refused_with_those_it_has() -> None:
    assert refusals(hardware="tpu-8i")["precision.compute"].endswith("for bf16 weights; known rates: fp4.")
    assert refusals(hardware="gb300-ws")["precision.compute"].endswith("known rates: none.")


def test_a_rate_that_the_card_does_not_publish_is_refused_and_not_replaced() -> None:
    found = refusals(hardware="a100-sxm-80gb", precision={"weights": "fp8", "compute": "fp8"})
    assert set(found) == {"precision.compute"}
    assert "has no published dense fp8 rate" in found["precision.compute"]


WORKS = {
    ("fp32", "fp32"), ("fp32", "tf32"), ("fp32", "bf16"), ("fp32", "fp16"),
    ("bf16", "fp32"), ("bf16", "tf32"), ("bf16", "bf16"), ("bf16", "fp16"),
    ("fp16", "fp32"), ("fp16", "tf32"), ("fp16", "bf16"), ("fp16", "fp16"),
    ("fp8", "fp32"), ("fp8", "tf32"), ("fp8", "bf16"), ("fp8", "fp16"), ("fp8", "fp8"),
    ("int8", "fp32"), ("int8", "tf32"), ("int8", "bf16"), ("int8", "fp16"), ("int8", "int8"),
    ("int4", "fp32"), ("int4", "tf32"), ("int4", "bf16"), ("int4", "fp16"), ("int4", "fp8"), ("int4", "int8"),
    ("int4", "int4"),
    ("mxfp4", "fp32"), ("mxfp4", "tf32"), ("mxfp4", "bf16"), ("mxfp4", "fp16"), ("mxfp4", "fp8"), ("mxfp4", "fp4"),
    ("nvfp4", "fp32"), ("nvfp4", "tf32"), ("nvfp4", "bf16"), ("nvfp4", "fp16"), ("nvfp4", "fp8"), ("nvfp4", "fp4"),
}  # fmt: skip


@pytest.mark.parametrize("weights", WeightFormat)
@pytest.mark.parametrize("compute", Dtype)
def test_narrow_arithmetic_works_only_on_elements_as_narrow(weights: str, compute: str) -> None:
    card = custom_card(dense_tflops=dict.fromkeys(Dtype, 100))
    sections: dict[str, Any] = {
        "hardware": {"custom": card},
        "precision": {"weights": weights, "compute": compute},
    }
    if (weights, compute) in WORKS:
        assert resolved(**sections).deployment.precision.compute is compute
    else:
        assert set(refusals(**sections)) == {"precision.compute"}


@pytest.mark.parametrize("model", shipped_catalog().models)
def test_every_model_resolves(model: str) -> None:
    assert resolved(model=model).deployment.architecture.name == shipped_catalog().models[model].name
