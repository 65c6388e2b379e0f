"""Names of checkpoints, in the ways that people and quantizers write them."""

import pytest

from app.calc.dtypes import WeightFormat
from app.catalog.catalog import Catalog
from app.engine_io.logs.model_names import cache_type, find_model, stated_weights


@pytest.mark.parametrize(
    ("name", "id_", "weights"),
    [
        ("meta-llama/Llama-3.1-8B", "llama-3.1-8b", None),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b", None),
        ("/srv/models/Llama-3.1-8B-Instruct/", "llama-3.1-8b", None),
        ("C:\\models\\Llama-3.1-8B-Instruct", "llama-3.1-8b", None),
        ("neuralmagic/Meta-Llama-3.1-405B-Instruct-FP8", "llama-3.1-405b", WeightFormat.FP8),
        ("RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16", "llama-3.3-70b", WeightFormat.INT4),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "llama-3.3-70b", WeightFormat.FP8),
        ("Qwen/Qwen3-30B-A3B-GPTQ-Int4", "qwen3-30b-a3b", WeightFormat.INT4),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "qwen2.5-7b", WeightFormat.INT4),
        ("Qwen3-30B-A3B-Instruct-2507-FP8", "qwen3-30b-a3b", WeightFormat.FP8),
        ("nvidia/Qwen3-235B-A22B-NVFP4", "qwen3-235b-a22b", WeightFormat.NVFP4),
        ("models--Qwen--Qwen3-14B", "qwen3-14b", None),
        ("Qwen3-30B-A3B-Q4_K_M.gguf", "qwen3-30b-a3b", WeightFormat.INT4),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3", None),
        ("openai/gpt-oss-120b", "gpt-oss-120b", None),
        ("google/gemma-3-27b-it", "gemma-3-27b", None),
        ("nvidia/GLM-5.2-NVFP4", "glm-5.2", WeightFormat.NVFP4),
    ],
)
def test_a_name_means_its_model(catalog: Catalog, name: str, id_: str, weights: WeightFormat | None) -> None:
    found = find_model(name, catalog.models)
    assert found is not None
    assert (found.id, found.weights) == (id_, weights)


@pytest.mark.parametrize(
    "name",
    [
        *(None, "", "/", "model", "fp8", "instruct", "AWQ-Int4", "a" * 301),
        # near in name and other in shape
        *("Qwen/Qwen2.5-VL-7B-Instruct", "mistralai/Mistral-7B-Instruct-v0.2", "someone/Llama-3.1-8B-pruned-4B"),
    ],
)
def test_what_is_no_model_of_the_catalog_is_none(catalog: Catalog, name: str | None) -> None:
    assert find_model(name, catalog.models) is None


def test_every_model_is_found_by_its_own_names(catalog: Catalog) -> None:
    for record in catalog.models.values():
        found = find_model(record.hub_id, catalog.models)
        assert found is not None
        assert found.id == record.id


def test_a_format_that_the_model_ships_in_is_native(catalog: Catalog) -> None:
    assert stated_weights(catalog.models["gpt-oss-120b"], WeightFormat.MXFP4) == "native"
    assert stated_weights(catalog.models["deepseek-v3"], WeightFormat.FP8) == "native"
    assert stated_weights(catalog.models["llama-3.1-8b"], WeightFormat.FP8) == "fp8"
    assert stated_weights(None, None) is None


def test_types_of_caches() -> None:
    names = ["fp8", "fp8_e4m3", "torch.float8_e5m2", "bfloat16", "torch.float16", "q8_0", "auto", None, "turbo3"]
    assert [cache_type(name) for name in names] == ["fp8", "fp8", "fp8", "bf16", "fp16", "int8", None, None, None]
