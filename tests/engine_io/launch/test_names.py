"""Which model a path names, and which path a model's files get."""

import pytest

from app.calc.dtypes import WeightFormat
from app.calc.model.parameters import NATIVE
from app.engine_io.launch.invocation import Named, choose_source, published, read_name, read_quantization
from app.scenario.scenario import Model
from tests.factories import shipped_catalog

NAMES = {
    "meta-llama/Llama-3.1-8B": Named("llama-3.1-8b", "bf16"),
    "META-LLAMA/llama-3.1-8b/": Named("llama-3.1-8b", "bf16"),
    "hf://meta-llama/Llama-3.1-8B": Named("llama-3.1-8b", "bf16"),
    "/mnt/models/Llama-3.1-8B": Named("llama-3.1-8b", "bf16"),
    "Llama-3.1-8B.gguf": Named("llama-3.1-8b"),
    "someone/Llama-3.1-8B-GGUF": Named("llama-3.1-8b"),
    "Llama-3.1-8B.Q4_K_M.gguf": Named("llama-3.1-8b", "int4"),
    "Llama-3.1-8B-UD-Q4_K_XL.gguf": Named("llama-3.1-8b", "int4"),
    "someone/Llama-3.1-8B-FP8-dynamic": Named("llama-3.1-8b", "fp8"),
    "someone/Llama-3.1-8B-quantized.w4a16": Named("llama-3.1-8b", "int4"),
    "Qwen/Qwen3-8B-FP8": Named("qwen3-8b", "fp8"),
    "nvidia/GLM-5-NVFP4": Named("glm-5", "nvfp4"),
    "moonshotai/Kimi-K2-Thinking": Named("kimi-k2", None, True),
    "meta-llama/Llama-3.1-8B-Instruct": Named("llama-3.1-8b"),
    "Qwen/Qwen2.5-7B-Instruct-AWQ": Named("qwen2.5-7b", "int4"),
    "someone/else": Named(),
    "someone/else-AWQ": Named(None, "int4"),
    "-FP8": Named(None, "fp8"),
    "x" * 400: Named(),
    "": Named(),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name(name: str) -> None:
    assert read_name(name, shipped_catalog()) == NAMES[name]


def test_every_published_checkpoint_is_recognised() -> None:
    for record in shipped_catalog().models.values():
        for number, (hub_id, label) in enumerate(published(record)):
            named = read_name(hub_id, shipped_catalog())
            assert named.model == record.id
            assert named.weights == label or (number and label == NATIVE)


def test_the_path_of_every_model_in_every_format_says_both() -> None:
    for record in shipped_catalog().models.values():
        for weights in WeightFormat:
            source = choose_source(Model(id=record.id), weights, shipped_catalog())
            assert read_name(source.path, shipped_catalog()) == Named(record.id, weights)


def test_the_usual_files_are_those_of_the_hub() -> None:
    source = choose_source(Model(id="deepseek-v3"), "fp8", shipped_catalog())
    assert (source.path, source.on_hub) == ("deepseek-ai/DeepSeek-V3", True)
    assert choose_source(Model(config={}), "bf16", shipped_catalog()).path == "/models/custom"


def test_the_tag_of_a_gguf_repository() -> None:
    assert read_quantization("Q8_0") == "int8"
    assert read_quantization("UD-Q4_K_XL") == "int4"
    assert read_quantization("Q2_K") is None
