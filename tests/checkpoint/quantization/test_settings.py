"""Settings that contradict each other, that nobody read, or that name their modules one by one."""

from typing import Any

import pytest

from app.calc.dtypes import Dtype, WeightFormat, WeightLayout
from app.calc.model.layers.parts import WeightGroup
from app.checkpoint.quantization.shipping import MIXTURE
from app.checkpoint.reading import ConfigError, Reading, read_config
from tests.checkpoint.published import config

FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128}


def llama(settings: dict[str, Any], **changes: Any) -> Reading:
    return read_config(config("llama-3.1-8b", quantization_config=settings, **changes), "Mine")


def refused(settings: dict[str, Any], **changes: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        llama(settings, **changes)
    return caught.value


def nested(inner: dict[str, Any], outer: dict[str, Any]) -> Reading:
    given = config("kimi-k2.5")
    text = given["text_config"] | {"quantization_config": inner}
    return read_config(given | {"text_config": text, "quantization_config": outer}, "K2.5")


def test_settings_inside_and_around_must_agree() -> None:
    assert nested(FP8, FP8).plan == nested(FP8, FP8 | {"fmt": "e4m3", "activation_scheme": "dynamic"}).plan
    with pytest.raises(ConfigError) as caught:
        nested(FP8, {"quant_method": "awq", "bits": 4, "group_size": 128})
    assert str(caught.value) == "quantization_config: contradicts text_config.quantization_config."
    with pytest.raises(ConfigError):
        nested(FP8, FP8 | {"modules_to_not_convert": ["self_attn"]})


def test_the_twin_blocks_of_mlx_must_agree() -> None:
    four, eight = {"bits": 4, "group_size": 64}, {"bits": 8, "group_size": 64}
    assert llama(four, quantization=four).plan == llama(four).plan
    error = refused(four, quantization=eight)
    assert str(error) == "quantization: contradicts quantization_config."
    assert refused(FP8, quantization=four).key == "quantization"


@pytest.mark.parametrize(
    "settings",
    [
        FP8,
        GPTQ,
        {"quant_method": "awq", "bits": 4},
        {"bits": 4, "group_size": 64},
        {"quant_method": "modelopt", "quant_algo": "NVFP4"},
        {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}},
        {"quant_method": "compressed-tensors", "format": "dense"},
        {"quant_method": "bitsandbytes", "load_in_4bit": True},
    ],
)
def test_a_key_that_no_dialect_reads_is_told(settings: dict[str, Any]) -> None:
    assert llama(settings).unread == ()
    more = {"mystery": 1, "version": "2", "producer": {"name": "x"}, "nothing": None, "hidden_dropout": 0.1}
    assert llama(settings | more).unread == ("quantization_config.mystery",)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        (FP8 | {"dynamic": {"-:x": {}}}, "dynamic"),
        (FP8 | {"bits": 4}, "bits"),
        (FP8 | {"extra_config": {"a": {"bits": 4}}}, "extra_config"),
        (GPTQ | {"layer_config": {"a": {"bits": 8}}}, "layer_config"),
        ({"quant_method": "awq", "bits": 4, "modules_in_block_to_quantize": [["mlp"]]}, "modules_in_block_to_quantize"),
        ({"quant_method": "compressed-tensors", "format": "dense", "transform_config": {"a": 1}}, "transform_config"),
        (GPTQ | {"block_name_to_quantize": "model.layers.0"}, "block_name_to_quantize"),
        (GPTQ | {"super_bits": 6}, "super_bits"),
    ],
)
def test_a_key_that_would_change_sizes_is_refused_where_it_is_not_read(settings: dict[str, Any], key: str) -> None:
    assert refused(settings).key == f"quantization_config.{key}"


def test_bits_that_say_what_is_known_anyway_are_no_contradiction() -> None:
    assert llama(FP8 | {"bits": 8}).unread == ()
    assert llama(GPTQ | {"block_name_to_quantize": "model.layers"}).unread == ()


def test_gptq_of_some_modules_alone() -> None:
    attention = [["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], ["self_attn.o_proj"]]
    some = llama(GPTQ | {"modules_in_block_to_quantize": attention})
    assert dict(some.plan.narrow) == {WeightGroup.ATTENTION: WeightLayout(Dtype.INT4, 128, 20)}
    every = [*attention, ["mlp.gate_proj", "mlp.up_proj"], ["mlp.down_proj"]]
    assert llama(GPTQ | {"modules_in_block_to_quantize": every}).plan == llama(GPTQ).plan
    error = refused(GPTQ | {"modules_in_block_to_quantize": [["attention.foo"]]})
    assert error.key == "quantization_config.modules_in_block_to_quantize"
    assert "attention.foo names nothing" in error.message


def test_gptqmodel_leaves_modules_out_by_expressions() -> None:
    reading = llama(GPTQ | {"dynamic": {"-:.*\\.mlp\\..*": {}, "+:.*\\.self_attn\\..*": {}}})
    assert set(dict(reading.plan.narrow)) & {WeightGroup.ATTENTION, WeightGroup.FEED_FORWARD} == {WeightGroup.ATTENTION}
    first = llama(GPTQ | {"dynamic": {"-:model\\.layers\\.0\\..*": {}}}).architecture
    assert first.layers[0].count == 1
    assert first.layers[0].unquantized == {WeightGroup.ATTENTION, WeightGroup.FEED_FORWARD}
    error = refused(GPTQ | {"dynamic": {"-:.*down.*": {}, "+:.*up.*": {"bits": 8}}})
    assert error.key == "quantization_config.dynamic"
    assert "+:.*up.*" in error.message


def test_quarks_cache() -> None:
    quark = {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}}
    output = {"output_tensors": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}, "weight": {"dtype": "fp8_e4m3"}}
    assert llama(quark).kv_cache is None
    for key in ("kv_cache_quant_config", "layer_quant_config"):
        reading = llama(quark | {key: {"*k_proj": output, "*v_proj": output}})
        assert reading.kv_cache is Dtype.FP8
        assert reading.plan == llama(quark).plan
        assert reading.unread == ()
    other = output | {"output_tensors": {"dtype": "fp7"}}
    error = refused(quark | {"kv_cache_quant_config": {"*k_proj": other}})
    assert error.key == "quantization_config.kv_cache_quant_config"
    elsewhere = {"kv_cache_quant_config": {"*o_proj": output, "*k_proj": {"output_tensors": None}}}
    assert llama(quark | elsewhere).kv_cache is None


def compressed(*targets: str) -> dict[str, Any]:
    weights = {"num_bits": 8, "type": "float", "strategy": "tensor"}
    groups = {"group_0": {"targets": list(targets), "weights": weights}}
    return {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": groups}


@pytest.mark.parametrize(
    "target", ["QKVParallelLinear", "Qwen3MoeMLP", "Embedding", "re:.*experts.*", "model.layers.99"]
)
def test_targets_that_name_nothing_known_are_refused(target: str) -> None:
    for targets in ((target,), ("Linear", target)):
        error = refused(compressed(*targets))
        assert error.key == "quantization_config.config_groups.group_0.targets"
        assert error.message == f"{target} names nothing that is known here."


def test_targets_in_a_tower_beside_the_model_are_no_concern() -> None:
    assert llama(compressed("Linear", "re:.*vision_tower.*", "re:.*mtp.*proj")).plan == llama(compressed("Linear")).plan


def test_formats_given_in_vain_are_told() -> None:
    block = {"bits": 4, "group_size": 64, "model.layers.40.mlp": {"bits": 8, "group_size": 64}}
    assert "A format is given to what this model has not: model.layers.40.mlp." in llama(block).notices


def test_lists_that_say_the_same_of_every_layer_are_a_plain_format() -> None:
    names = [f"model.layers.{i}.self_attn.{p}_proj" for i in range(32) for p in "qkvo"]
    listed, plain = (llama(FP8 | {"modules_to_not_convert": own}) for own in (names, ["self_attn"]))
    assert (listed.plan, listed.architecture) == (plain.plan, plain.architecture)
    assert not any(group.unquantized for group in listed.architecture.layers)
    matrices = [*names, *(f"model.layers.{i}.mlp.{p}_proj" for i in range(32) for p in ("gate", "up", "down"))]
    layers = {name: {"quant_algo": "W4A16_NVFP4" if "mlp" in name else "NVFP4"} for name in matrices}
    reading = llama({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers})
    assert reading.plan.label == WeightFormat.NVFP4
    assert MIXTURE not in {layout.description for _, layout in reading.plan.narrow}


def test_layers_that_differ_in_what_is_left_wide_are_told_apart_alone() -> None:
    layers = {
        f"model.layers.{i}.{part}": {"quant_algo": "FP8"}
        for i in range(32)
        for part in ("self_attn", *(["mlp"] if i else []))
    }
    reading = llama({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers})
    assert [group.count for group in reading.architecture.layers] == [1, 31]
    assert set(dict(reading.plan.narrow).values()) == {WeightLayout(Dtype.FP8)}
    assert not reading.notices


@pytest.mark.parametrize(
    "settings",
    [
        {"bits": 4, "group_size": 64},
        {"quant_method": "auto-round", "bits": 4, "extra_config": {}},
        {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "int8"}}, "layer_quant_config": {}},
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {}},
    ],
)
def test_formats_module_by_module_are_read_once_each_and_not_without_end(settings: dict[str, Any]) -> None:
    def entry(number: int) -> dict[str, Any]:
        weight = {"dtype": "int8", "qscheme": "per_group", "group_size": number}
        return {"bits": 8, "group_size": number, "weight": weight, "quant_algo": "INT4_AWQ"}

    key = next((key for key in ("extra_config", "layer_quant_config", "quantized_layers") if key in settings), None)
    for modules, is_read in (
        ({f"model.layers.{i % 32}.mlp.x{i}": entry(64) for i in range(3_000)}, True),
        ({f"model.layers.{i % 32}.mlp.x{i}": entry(i + 1) for i in range(257)}, False),
        ({f"model.layers.{i % 32}.mlp.x{i}": entry(64) for i in range(15_001)}, False),
    ):
        whole = settings | (modules if key is None else {key: modules})
        if is_read:
            assert llama(whole).unread == ()
        else:
            assert refused(whole).key.startswith("quantization_config")
