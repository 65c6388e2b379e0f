"""Each dialect of quantization settings on a published model, with the bytes worked out by hand."""

from dataclasses import replace
from typing import Any

import pytest

from app.calc.dtypes import Dtype, WeightFormat, WeightLayout
from app.calc.model.layers.parts import WeightGroup
from app.calc.model.parameters import count_parameters, weight_bytes
from app.checkpoint.quantization.shipping import MIXTURE
from app.checkpoint.reading import ConfigError, Reading, read_config
from tests.checkpoint.published import config

# Llama-3.1-8B: 32 layers of 41,943,040 in attention and 176,160,768 in the block; embedding and head 525,336,576 each;
# 65 norms of 4,096.
ATTENTION, BLOCKS = 32 * 41_943_040, 32 * 176_160_768
MATRICES = ATTENTION + BLOCKS
REST = 2 * 525_336_576 + 65 * 4_096


def llama(settings: dict[str, Any] | None, key: str = "quantization_config", **options: Any) -> Reading:
    given = config("llama-3.1-8b") if settings is None else config("llama-3.1-8b", **{key: settings})
    return read_config(given, "Mine", **options)


def size(reading: Reading) -> float:
    return weight_bytes(count_parameters(reading.architecture), reading.plan)


def file_bytes(reading: Reading) -> float:
    """With multi-token prediction and the copies that the files carry."""
    loaded = replace(reading.architecture, mtp=reading.mtp)
    copies = (reading.mtp.duplicate_params or 0) if reading.mtp else 0
    return weight_bytes(count_parameters(loaded), reading.plan) + copies * reading.plan.wide.bytes_per_weight


def refused(settings: Any, name: str = "llama-3.1-8b", **options: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read_config(config(name, quantization_config=settings), "Mine", **options)
    return caught.value


def test_plain_weights() -> None:
    assert size(llama(None)) == 2 * (MATRICES + REST) == 16_060_522_496


def test_fp8_in_blocks() -> None:
    reading = llama({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]})
    assert reading.plan.label == "fp8"
    assert size(reading) == MATRICES + MATRICES * 4 / 16_384 + 2 * REST


def test_fp8_with_one_scale_a_matrix() -> None:
    reading = llama({"quant_method": "fp8", "weight_block_size": None, "modules_to_not_convert": ["lm_head"]})
    assert reading.plan.label == "native"
    assert size(reading) == MATRICES + 2 * REST


def test_fbgemm_with_one_scale_a_row() -> None:
    names = [f"model.layers.{i}.mlp.{part}" for i in (0, 31) for part in ("gate_proj", "up_proj", "down_proj")]
    reading = llama({"quant_method": "fbgemm_fp8", "modules_to_not_convert": names})
    wide = 2 * 176_160_768
    assert [group.count for group in reading.architecture.layers] == [2, 30]
    assert reading.architecture.layers[0].unquantized == {WeightGroup.FEED_FORWARD}
    assert reading.architecture.order == (0, *(1,) * 30, 0)
    assert size(reading) == (MATRICES - wide) * (1 + 4 / 4_096) + 2 * wide + 2 * REST


def test_gptq_with_groups_and_with_rows() -> None:
    reading = llama({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True})
    assert reading.plan.label == "int4"
    assert size(reading) == MATRICES * (4 + 20 / 128) / 8 + 2 * REST
    rows = llama({"quant_method": "gptq", "bits": 8, "group_size": -1, "lm_head": True})
    assert size(rows) == (MATRICES + 525_336_576) * (8 + 24 / 4_096) / 8 + 2 * (REST - 525_336_576)


def test_awq_with_and_without_zero_points() -> None:
    named = {"quant_method": "awq", "w_bit": 4, "q_group_size": 64, "zero_point": True, "version": "gemm"}
    assert size(llama(named)) == MATRICES * (4 + 20 / 64) / 8 + 2 * REST
    assert size(llama(named | {"zero_point": False})) == MATRICES * (4 + 16 / 64) / 8 + 2 * REST


def test_bitsandbytes() -> None:
    four = {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False, "bnb_4bit_quant_type": "nf4"}
    assert size(llama(four)) == MATRICES * (4 + 32 / 64) / 8 + 2 * REST
    double = four | {"bnb_4bit_use_double_quant": True}
    assert size(llama(double)) == MATRICES * (4 + 8 / 64 + 32 / 16_384) / 8 + 2 * REST
    eight = {"quant_method": "bitsandbytes", "load_in_4bit": False, "load_in_8bit": True}
    assert size(llama(eight)) == MATRICES * (8 + 32 / 4_096) / 8 + 2 * REST


def test_mlx_takes_embedding_and_head_along_and_some_modules_otherwise() -> None:
    block = {"bits": 4, "group_size": 64}
    everything = MATRICES + 2 * 525_336_576
    assert size(llama(block, "quantization")) == everything * 4.5 / 8 + 2 * 65 * 4_096
    finer = block | {"model.embed_tokens": {"bits": 8, "group_size": 64}, "lm_head": False}
    assert size(llama(finer, "quantization")) == (
        MATRICES * 4.5 / 8 + 525_336_576 * 8.5 / 8 + 2 * (525_336_576 + 65 * 4_096)
    )


def scheme(**weights: Any) -> dict[str, Any]:
    return {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "symmetric": True} | weights}}


@pytest.mark.parametrize(
    ("form", "weights", "bits"),
    [
        ("pack-quantized", {"strategy": "group", "group_size": 32}, 4 + 16 / 32),
        ("pack-quantized", {"strategy": "group", "group_size": 128, "symmetric": False}, 4 + 20 / 128),
        ("pack-quantized", {"strategy": "channel"}, 4 + 16 / 4_096),
        ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "channel"}, 8 + 16 / 4_096),
        ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "tensor"}, 8),
        ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]},
         8 + 32 / 16_384),
        ("naive-quantized", {"num_bits": 8, "type": "float", "strategy": "tensor"}, 8),
        ("int-quantized", {"num_bits": 8, "strategy": "channel"}, 8 + 16 / 4_096),
        ("nvfp4-pack-quantized", {"type": "float", "strategy": "tensor_group", "group_size": 16}, 4.5),
        ("mxfp4-pack-quantized", {"type": "float", "strategy": "group", "group_size": 32}, 4.25),
    ],
)  # fmt: skip
def test_compressed_tensors(form: str, weights: dict[str, Any], bits: float) -> None:
    settings = {
        "quant_method": "compressed-tensors",
        "format": form,
        "config_groups": scheme(**weights),
        "ignore": ["lm_head"],
    }
    assert size(llama(settings)) == MATRICES * bits / 8 + 2 * REST
    # The head is a linear layer like the others: without its name in the list it is quantized too.
    with_head = llama(settings | {"ignore": []})
    assert size(with_head) == (MATRICES + 525_336_576) * bits / 8 + 2 * (REST - 525_336_576)


def test_compressed_tensors_of_several_schemes() -> None:
    groups = scheme(strategy="group", group_size=32) | {
        "group_1": {
            "targets": ["re:.*self_attn\\.(q|k|v)_proj"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "tensor"},
        }
    }
    settings = {"quant_method": "compressed-tensors", "format": "mixed-precision", "config_groups": groups}
    reading = llama(
        settings | {"ignore": ["lm_head", "re:.*down_proj"], "kv_cache_scheme": {"num_bits": 8, "type": "float"}}
    )
    queries, output = 32 * 4_096 * (4_096 + 2 * 1_024), 32 * 4_096 * 4_096
    down, others = 32 * 4_096 * 14_336, 32 * 2 * 4_096 * 14_336
    assert size(reading) == queries + output * 4.5 / 8 + others * 4.5 / 8 + 2 * down + 2 * REST
    assert reading.kv_cache is Dtype.FP8
    assert {layout.description for _, layout in reading.plan.narrow} >= {MIXTURE}
    assert sum("mixture" in notice for notice in reading.notices) == 2


def test_quark() -> None:
    def quark(**weight: Any) -> dict[str, Any]:
        return {"quant_method": "quark", "global_quant_config": {"weight": weight}, "exclude": ["lm_head"]}

    assert size(llama(quark(dtype="fp8_e4m3", qscheme="per_tensor"))) == MATRICES + 2 * REST
    narrow = quark(dtype="fp4", qscheme="per_group", group_size=32, scale_format="e8m0")
    assert size(llama(narrow)) == MATRICES * 4.25 / 8 + 2 * REST
    mixed = narrow | {"layer_quant_config": {"*self_attn*": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}}}}
    assert size(llama(mixed)) == BLOCKS * 4.25 / 8 + ATTENTION + 2 * REST


def test_auto_round() -> None:
    settings = {"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True, "packing_format": "auto_gptq"}
    assert size(llama(settings)) == MATRICES * (4 + 20 / 128) / 8 + 2 * REST
    extra = {f"model.layers.{i}.self_attn.o_proj": {"bits": 16} for i in range(32)}
    wide = 32 * 4_096 * 4_096
    assert (
        size(llama(settings | {"extra_config": extra})) == (MATRICES - wide) * (4 + 20 / 128) / 8 + 2 * wide + 2 * REST
    )


@pytest.mark.parametrize(
    ("algorithm", "bits"),
    [("FP8", 8), ("NVFP4", 4.5), ("W4A16_NVFP4", 4.5), ("W4A16_AWQ", 4 + 16 / 128), ("MXFP8", 8.25)],
)
def test_modelopt_in_either_file(algorithm: str, bits: float) -> None:
    beside: dict[str, Any] = {
        "producer": {"name": "modelopt"},
        "quantization": {"quant_algo": algorithm, "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]},
    }
    inside = {"quant_method": "modelopt", "quant_algo": algorithm, "kv_cache_scheme": "FP8", "ignore": ["lm_head"]}
    for reading in (
        llama(None, quantization=beside),
        llama(inside),
        llama({key: value for key, value in inside.items() if key != "quant_method"}),
        llama(inside, quantization=beside),
    ):
        assert size(reading) == MATRICES * bits / 8 + 2 * REST
        assert reading.kv_cache is Dtype.FP8


def test_modelopt_layer_by_layer() -> None:
    layers: dict[str, Any] = {
        f"model.layers.{i}.self_attn.{p}_proj": {"quant_algo": "FP8"} for i in range(32) for p in "qkvo"
    }
    layers |= {
        f"model.layers.{i}.mlp.{p}_proj": {"quant_algo": "W4A16_NVFP4"}
        for i in range(31)
        for p in ("gate", "up", "down")
    }
    layers |= {"lm_head": {"quant_algo": "W4A16_NVFP4", "group_size": 16}}
    reading = llama({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers})
    last = 176_160_768
    assert size(reading) == (ATTENTION + (BLOCKS - last + 525_336_576) * 4.5 / 8 + 2 * last + 2 * (REST - 525_336_576))
    assert [group.count for group in reading.architecture.layers] == [31, 1]


def test_the_two_files_must_agree() -> None:
    inside = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
    error = refused(inside, quantization={"quantization": {"quant_algo": "FP8"}})
    assert error.key == "hf_quant_config.quantization.quant_algo"


@pytest.mark.parametrize(("name", "published"), [("gpt-oss-20b", 13_761_264_768), ("gpt-oss-120b", 65_248_815_744)])
def test_gpt_oss_is_as_large_as_its_files_to_the_byte(name: str, published: int) -> None:
    ignored = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    settings = {"quant_method": "mxfp4", "modules_to_not_convert": ignored}
    reading = read_config(config(name, quantization_config=settings), name)
    assert size(reading) == published
    assert reading.plan.label == "mxfp4"


@pytest.mark.parametrize(("name", "published"), [("deepseek-v3", 688_586_727_753), ("kimi-k2", 1_029_190_981_272)])
def test_deepseek_and_kimi_are_as_large_as_their_files(name: str, published: int) -> None:
    settings = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
    reading = read_config(config(name, quantization_config=settings), name)
    assert abs(file_bytes(reading) / published - 1) < 1e-4
    assert reading.plan.label == "fp8"


def test_deepseek_v4_has_its_experts_in_fp4_over_its_settings() -> None:
    settings = {"quant_method": "fp8", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"}
    given = config("deepseek-v4-flash", expert_dtype="fp4", quantization_config=settings)
    reading = read_config(given, "V4")
    layouts = dict(reading.plan.narrow)
    assert layouts[WeightGroup.ROUTED_EXPERTS] == WeightFormat.MXFP4.layout
    assert layouts[WeightGroup.SHARED_EXPERTS] == WeightFormat.FP8.layout
    # Compressors and the index's weights stay wide: the published count of 32-bit scales is that of 6,023,020,544
    # elements, less the 33,554,432 of the joint projection and those of the predicting layer.
    counts = count_parameters(reading.architecture)
    attention = counts.group(WeightGroup.ATTENTION).matrices
    narrow_bits = layouts[WeightGroup.ATTENTION].bits_per_weight * attention
    wide = (16 * attention - narrow_bits) / (16 - 8 - 32 / 16_384)
    predicting = 106_956_352 - 1_024 - 512 - 64 + 25_165_824
    shared = counts.group(WeightGroup.SHARED_EXPERTS).matrices
    assert wide + shared + predicting + 2 * 4_096**2 == pytest.approx(6_023_020_544, abs=1)


def test_experts_that_modelopt_quantized_further() -> None:
    settings = {
        "quant_method": "fp8", "weight_block_size": [128, 128], "quant_algo": "MIXED_PRECISION",
        "moe_quant_algo": "NVFP4", "group_size": 16, "kv_cache_quant_algo": None,
        "ignore": ["*.attn.*", "*.ffn.shared_experts.*", "head", "mtp.*"],
    }  # fmt: skip
    given = config("deepseek-v4-flash", expert_dtype="fp4", quantization_config=settings)
    layouts = dict(read_config(given, "V4").plan.narrow)
    assert layouts[WeightGroup.ROUTED_EXPERTS] == WeightFormat.NVFP4.layout
    assert layouts[WeightGroup.SHARED_EXPERTS] == WeightFormat.FP8.layout


def test_settings_of_a_nested_language_model() -> None:
    ignored = ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"]
    settings = {
        "quant_method": "compressed-tensors", "format": "pack-quantized",
        "config_groups": scheme(strategy="group", group_size=32), "ignore": ignored,
    }  # fmt: skip
    given = config("kimi-k2.5")
    given = given | {"text_config": given["text_config"] | {"quantization_config": settings}}
    reading = read_config(given, "K2.5")
    experts = 60 * 384 * 3 * 7_168 * 2_048
    assert dict(reading.plan.narrow)[WeightGroup.ROUTED_EXPERTS] == WeightLayout(Dtype.INT4, 32, 16)
    assert size(reading) == experts * 4.5 / 8 + 2 * (1_026_408_232_448 - experts)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"quant_method": "magic"}, "quantization_config.quant_method"),
        ({"quant_method": "torchao"}, "quantization_config.quant_method"),
        ({"bits_per_weight": 4}, "quantization_config.quant_method"),
        ({"quant_method": "gptq", "bits": 3, "group_size": 128}, "quantization_config.bits"),
        ({"quant_method": "gptq", "bits": 4, "dynamic": {"+:x": {"bits": 8}}}, "quantization_config.dynamic"),
        ({"quant_method": "fp8", "fmt": "e5m2"}, "quantization_config.fmt"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, "quantization_config.weight_block_size"),
        ({"quant_method": "fp8", "modules_to_not_convert": {"a": 1}}, "quantization_config.modules_to_not_convert"),
        ({"quant_method": "fp8", "modules_to_not_convert": ["re:(?!x)"]}, "quantization_config.modules_to_not_convert"),
        ({"quant_method": "compressed-tensors", "format": "marlin-24"}, "quantization_config.format"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, "quantization_config.config_groups"),
        ({"quant_method": "modelopt", "quant_algo": "FP2"}, "quantization_config.quant_algo"),
        ({"quant_method": "modelopt"}, "quantization_config.quant_algo"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 32}, "quantization_config.group_size"),
        ({"quant_method": "bitsandbytes"}, "quantization_config.load_in_4bit"),
        ({"quant_method": "quark"}, "quantization_config.global_quant_config"),
        (
            {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_scheme": "FP3"},
            "quantization_config.kv_cache_scheme",
        ),
    ],
)
def test_what_is_not_known_is_refused_by_its_key(settings: dict[str, Any], key: str) -> None:
    assert refused(settings).key == key
