"""The document of a scenario gives the same scenario back."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.calc.dtypes import Dtype, WeightFormat
from app.scenario.scenario import Scenario
from tests.factories import custom_card, scenario_document

CHOICES: list[dict[str, Any]] = [
    {},
    {"hardware": {"custom": custom_card(dense_tflops={"fp8": 2000, "bf16": 0.1}, usd_per_hour=0, tdp_w=1e-3)}},
    {"precision": {"weights": "nvfp4", "kv_cache": "int4", "compute": "fp4"}},
    {"workload": {"concurrency": None, "prefix_hit_rate": 1, "slo_tpot_s": 5e-324}},
    {"engine": {"id": "llama.cpp", "version": "b6123", "kv_pool_bytes": 1.5, "max_num_seqs": 1}},
    {"engine": {"id": "llm-d", "underneath": "sglang", "prefix_caching": False, "enforce_eager": True}},
    {"engine": {"total_memory_bytes": 8.5e10, "weights_bytes": 0, "activation_bytes": 1e9, "graph_bytes": 0.5}},
    {"techniques": {"speculative": {"draft_tokens": 3, "draft": {"id": "qwen3-0.6b"}}}},
    {"techniques": {"speculative": {"draft_tokens": 64, "draft": {"config": {"model_type": "llama"}}}}},
    {"techniques": {"speculative": {"draft_tokens": 3, "method": "eagle", "acceptance_length": 2.8}}},
    {"techniques": {"disaggregation": {"hardware": {"custom": custom_card()}, "link": "card", "link_gb_per_s": 0.1}}},
    {"techniques": {"chunked_prefill": False, "static_batching": True, "reserved_tokens": 1, "attention": "mla"}},
    {"workload": {"answer_shape": "exponential", "longest_answer": 10**8, "shared_prefix_tokens": 999}},
    {"observed": {"kv_tokens": 0, "gpu_blocks": 46_611, "max_concurrency": 2.48}},
    {"memory_basis": "marketed", "parallelism": {"tensor": 8, "decode_context": 2}, "schema_version": 1},
    {"calibration": {"name": "Mine & yours", "decode": {"factor": 1.0000000000000002, "points": 10**6}}},
    {"calibration": {"name": "«M»", "prefill": {"factor": 20, "points": 1, "low": 5e-324, "high": 100}}},
    {"model": {"config": {"model_type": "llama", "deep": [{"a": [1, 2.5, None, True, "x"]}]}, "name": "Mine"}},
]


@pytest.mark.parametrize("sections", CHOICES, ids=str)
def test_the_document_comes_back_as_the_same_scenario(sections: dict[str, Any]) -> None:
    found = Scenario.model_validate(scenario_document() | sections)
    again = Scenario.model_validate(found.document())
    assert again == found
    assert again.document() == found.document()
    assert Scenario.model_validate_json(json.dumps(found.document(), allow_nan=False)) == found


@settings(deadline=None, derandomize=True, max_examples=80)
@given(
    st.fixed_dictionaries(
        {
            "precision": st.fixed_dictionaries(
                {"weights": st.sampled_from(WeightFormat), "compute": st.none() | st.sampled_from(Dtype)}
            ),
            "workload": st.fixed_dictionaries(
                {
                    "prompt_tokens": st.integers(1, 10**8),
                    "concurrency": st.none() | st.integers(1, 10**6),
                    "prefix_hit_rate": st.floats(0, 1),
                    "slo_ttft_s": st.none() | st.floats(0, 1e6, exclude_min=True),
                }
            ),
            "engine": st.fixed_dictionaries(
                {
                    "memory_utilization": st.none() | st.floats(0.01, 1),
                    "kv_pool_bytes": st.none() | st.floats(1, 1e15),
                    "version": st.none() | st.from_regex(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,39}", fullmatch=True),
                }
            ),
        }
    )
)
def test_any_sound_document_comes_back_as_the_same_scenario(sections: dict[str, Any]) -> None:
    found = Scenario.model_validate(scenario_document() | sections)
    assert Scenario.model_validate(found.document()) == found
    assert Scenario.model_validate_json(json.dumps(found.document(), allow_nan=False)) == found
