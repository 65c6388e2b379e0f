"""What a reading tells beside the architecture: origins, unread keys, notices, suggestions and refusals."""

import json
from typing import Any

import pytest

from app.calc.dtypes import Dtype
from app.calc.model.layers.grouped_attention import GroupedAttention, QkNorm
from app.calc.model.parameters import WeightPlan
from app.checkpoint.families import BY_MODEL_TYPE, NO_DECODER, NOT_COMPUTED
from app.checkpoint.reading import FAMILIES, ConfigError, FieldReading, Origin, Reading, UnknownFamilyError, read_config
from tests.checkpoint.published import config, entries, nested


def read(**changes: Any) -> Reading:
    return read_config(config("llama-3.1-8b", **changes), "Mine")


def refused(given: Any, **options: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read_config(given, "Mine", **options)
    assert caught.value.message.endswith(".")
    return caught.value


def fields(reading: Reading) -> dict[str, FieldReading]:
    return {field.name: field for field in reading.fields}


def test_each_field_says_where_it_came_from() -> None:
    found = fields(read(head_dim=..., mlp_bias=...))
    assert found["hidden_size"] == FieldReading("hidden_size", 4096, Origin.READ, "hidden_size")
    assert (found["head_dim"].value, found["head_dim"].origin) == (128, Origin.DERIVED)
    assert found["head_dim"].note == "hidden size ÷ heads"
    assert (found["mlp_bias"].value, found["mlp_bias"].origin) == (False, Origin.DEFAULT)
    assert found["dtype"].origin is Origin.READ
    assert fields(read(torch_dtype=..., dtype=...))["dtype"].origin is Origin.ASSUMED


def test_a_key_inside_a_block_is_named_with_its_path() -> None:
    found = fields(read_config(config("gemma-3-27b"), "Gemma"))
    assert found["n_layers"].key == "text_config.num_hidden_layers"
    assert found["vision_params"].origin is Origin.DERIVED


def test_a_nested_block_takes_what_it_leaves_out_from_its_class() -> None:
    reading = read_config({"model_type": "llava", "text_config": {"model_type": "llama"}}, "LLaVA")
    assert (reading.architecture.hidden_size, reading.architecture.n_layers) == (4096, 32)
    assert fields(reading)["hidden_size"].origin is Origin.DEFAULT
    # The file itself states its sizes: there is nothing to fall back on.
    assert refused({"model_type": "llama"}).key == "hidden_size"


def test_keys_that_nothing_reads_are_told_and_noise_is_not() -> None:
    reading = read(strange_size=7, another={"a": 1}, rope_theta=5e5, attention_dropout=0.0, eos_token_id=2, zero=None)
    assert reading.unread == ("strange_size", "another")
    inside = read_config(nested("gemma-3-27b", strange=1) | {"outside": 1}, "Gemma")
    assert inside.unread == ("text_config.strange", "outside")


def test_unread_keys_are_told_in_bounds() -> None:
    many = {f"key_{i}\x07{'x' * 500}": i for i in range(5000)}
    reading = read(**many)
    assert len(reading.unread) <= 200
    assert all(key.isprintable() and len(key) <= 61 for key in reading.unread)


def test_the_type_of_plain_weights_is_read() -> None:
    assert read(torch_dtype="float16").plan.wide.element is Dtype.FP16
    assert read(torch_dtype="float32").plan.label == "fp32"
    assert read(torch_dtype=..., dtype="bfloat16").plan.label == "bf16"
    assert refused(config("llama-3.1-8b", torch_dtype="int3")).key == "torch_dtype"
    assert isinstance(read().plan, WeightPlan)
    assert read().kv_cache is None


@pytest.mark.parametrize(
    ("given", "first"),
    [
        (config("llama-3.1-8b", model_type="mine"), "llama"),
        (config("qwen3-8b", model_type="mine"), "qwen3"),
        (config("qwen3-30b-a3b", model_type="mine"), "qwen3_moe"),
        (config("mixtral-8x7b", model_type="mine"), "mixtral"),
        (config("deepseek-v3", model_type="mine", topk_group=4), "deepseek_v3"),
        (config("qwen3-next-80b-a3b", model_type="mine"), "qwen3_next"),
        (config("kimi-linear-48b-a3b", model_type="mine"), "kimi_linear"),
        (config("nemotron-h-8b", model_type="mine"), "nemotron_h"),
        (config("lfm2-1.2b", model_type="mine"), "lfm2"),
        (config("lfm2-8b-a1b", model_type="mine"), "lfm2_moe"),
        (config("falcon-h1-0.5b", model_type="mine"), "falcon_h1"),
        (config("recurrentgemma-2b", model_type="mine"), "recurrent_gemma"),
        (config("deepseek-v4-flash", model_type="mine"), "deepseek_v4"),
        (config("gpt2", model_type="mine"), "gpt2"),
        (config("llama-3.1-8b", model_type="mine", architectures=["MistralForCausalLM"]), "mistral"),
        ({"model_type": "new_vl", "text_config": config("qwen3-8b", model_type="new_text")}, "qwen3"),
    ],
)
def test_an_unknown_model_with_familiar_keys_is_offered_as_a_family_and_never_read(given: Any, first: str) -> None:
    error = refused(given)
    assert isinstance(error, UnknownFamilyError)
    assert error.key.endswith("model_type")
    assert error.suggestions[0].read_as == first
    assert error.suggestions[0].because.endswith(".")
    for suggestion in error.suggestions:
        reading = read_config(given, "Mine", read_as=suggestion.read_as)
        assert (reading.read_as, reading.family) == (suggestion.read_as, suggestion.read_as)
        assert any("as asked" in notice for notice in reading.notices)


def test_a_known_model_read_as_itself_is_nothing_to_remark_on() -> None:
    reading = read_config(config("llama-3.1-8b"), "Mine", read_as="llama")
    assert reading.read_as is None
    assert reading.notices == ()


def test_it_can_be_read_as_another_family_on_purpose() -> None:
    reading = read_config(config("llama-3.1-8b"), "Mine", read_as="qwen3")
    (group,) = reading.architecture.layers
    assert isinstance(group.mixer, GroupedAttention)
    assert group.mixer.qk_norm is QkNorm.PER_HEAD
    assert (reading.read_as, reading.model_type) == ("qwen3", "llama")


def test_a_family_to_read_as_must_be_known() -> None:
    assert refused(config("llama-3.1-8b"), read_as="nothing").key == "read_as"


@pytest.mark.parametrize("model_type", sorted(NO_DECODER | set(NOT_COMPUTED)))
def test_what_is_no_decoder_or_not_computed_is_refused_by_name_without_a_suggestion(model_type: str) -> None:
    error = refused(config("llama-3.1-8b", model_type=model_type))
    if model_type == "git":  # Grok 2 says so too, and is known by its class
        return
    assert not isinstance(error, UnknownFamilyError)
    assert error.key == "model_type"
    assert model_type in error.message
    assert model_type not in BY_MODEL_TYPE


def test_unfamiliar_keys_are_offered_as_nothing() -> None:
    error = refused({"model_type": "mine", "width": 5})
    assert isinstance(error, UnknownFamilyError)
    assert error.suggestions == ()


def test_an_encoder_decoder_is_refused() -> None:
    assert refused(config("llama-3.1-8b", is_encoder_decoder=True)).key == "is_encoder_decoder"


@pytest.mark.parametrize("value", [..., None, 5, True, "", " ", ["llama"], {"a": 1}])
def test_a_model_type_is_needed(value: Any) -> None:
    assert refused(config("llama-3.1-8b", model_type=value)).key == "model_type"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_experts", 8),
        ("kv_lora_rank", 512),
        ("layers_block_type", ["attention"]),
        ("linear_attn_config", {"kda_layers": [1]}),
        ("mamba_d_state", 16),
        ("index_topk", 2048),
        ("num_kv_shared_layers", 10),
        ("cross_attention_layers", [3]),
        ("use_mla", True),
        ("conv_L_cache", 3),
        ("mamba_d_ssm", 1536),
        ("lru_width", 2560),
        ("decay_low_rank_dim", 96),
        ("proj_low_rank_dim", 32),
        ("num_experts", "8"),
    ],
)
def test_a_structure_that_the_family_has_not_is_refused_by_its_key(key: str, value: Any) -> None:
    assert refused(config("llama-3.1-8b", **{key: value})).key == key


@pytest.mark.parametrize("value", [None, 0, False, []])
def test_a_structure_that_is_switched_off_is_none(value: Any) -> None:
    assert read(num_experts=value, kv_lora_rank=value).architecture == read().architecture


CONTRADICTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("llama-3.1-8b", {"num_key_value_heads": 5}, "num_key_value_heads"),
    ("llama-3.1-8b", {"num_key_value_heads": 64}, "num_key_value_heads"),
    ("llama-3.1-8b", {"num_attention_heads": 31, "num_key_value_heads": None, "head_dim": None}, "head_dim"),
    ("llama-3.1-8b", {"n_layer": 31}, "n_layer"),
    ("gpt-oss-20b", {"layer_types": ["full_attention"] * 23}, "layer_types"),
    ("gpt-oss-20b", {"layer_types": ["linear_attention"] * 24}, "layer_types"),
    ("gpt-oss-20b", {"num_experts_per_tok": 33, "experts_per_token": None}, "num_experts_per_tok"),
    ("gpt-oss-20b", {"experts_per_token": 5}, "experts_per_token"),
    ("gpt-oss-20b", {"sliding_window": None}, "sliding_window"),
    ("deepseek-v3", {"first_k_dense_replace": 62}, "first_k_dense_replace"),
    ("deepseek-v3", {"attention_bias": True}, "attention_bias"),
    ("glm-5.2", {"qk_head_dim": 255}, "qk_head_dim"),
    ("glm-5.2", {"indexer_types": ["shared"] * 78}, "indexer_types"),
    ("glm-5.2", {"indexer_types": None}, "index_topk_freq"),
    ("deepseek-v4-flash", {"compress_ratios": [4] * 40}, "compress_ratios"),
    ("deepseek-v4-flash", {"compress_ratios": [8] * 43}, "compress_ratios"),
    ("deepseek-v4-flash", {"num_hash_layers": 44}, "num_hash_layers"),
    ("deepseek-v4-flash", {"o_groups": 7}, "o_groups"),
    ("deepseek-v4-flash", {"num_key_value_heads": 2}, "num_key_value_heads"),
    ("nemotron-h-8b", {"num_hidden_layers": 51}, "hybrid_override_pattern"),
    ("nemotron-h-8b", {"hybrid_override_pattern": "M-X"}, "hybrid_override_pattern"),
    ("nemotron-h-8b", {"n_groups": 3}, "n_groups"),
    ("nemotron-h-8b", {"mamba_proj_bias": True}, "mamba_proj_bias"),
    ("lfm2-350m", {"full_attn_idxs": None}, "layer_types"),
    ("lfm2-350m", {"full_attn_idxs": [2, 16]}, "full_attn_idxs"),
    ("lfm2-350m", {"block_ff_dim": None}, "intermediate_size"),
    ("lfm2-1.2b", {"full_attn_idxs": [2]}, "full_attn_idxs"),
    ("lfm2-1.2b", {"layer_types": ["conv"] * 15}, "layer_types"),
    ("lfm2-1.2b", {"layer_types": ["mamba"] * 16}, "layer_types"),
    ("lfm2-8b-a1b", {"num_dense_layers": 25}, "num_dense_layers"),
    ("falcon-h1-0.5b", {"mamba_d_ssm": 1024}, "mamba_d_ssm"),
    ("falcon-h1-0.5b", {"mamba_d_ssm": None}, "mamba_n_heads"),
    ("falcon-h1-0.5b", {"projectors_bias": True}, "projectors_bias"),
    ("falcon-h1-0.5b", {"mamba_proj_bias": True}, "mamba_proj_bias"),
    ("recurrentgemma-2b", {"lru_width": 2561}, "lru_width"),
    ("recurrentgemma-2b", {"_block_types": ["recurrent", "mamba"]}, "_block_types"),
    ("recurrentgemma-2b", {"intermediate_size": 1}, "intermediate_size"),
    ("rwkv7-1.5b", {"head_dim": 100}, "head_dim"),
    ("rwkv7-1.5b", {"v_low_rank_dim": None}, "v_low_rank_dim"),
    ("rwkv7-1.5b", {"value_dim": 4096}, "value_dim"),
    ("rwkv7-1.5b", {"value_dim": [2048] * 23 + [4096]}, "value_dim"),
    ("rwkv7-1.5b", {"attn": {"layers": [1]}}, "attn"),
    ("rwkv7-1.5b", {"norm_first": False}, "norm_first"),
    ("rwkv6-1.6b", {"expand_k": 0.5}, "expand_k"),
    ("rwkv6-1.6b", {"expand_k": None}, "expand_k"),
    ("rwkv6-1.6b", {"expand_v": 2.0}, "expand_v"),
    ("rwkv6-1.6b", {"num_heads": 3}, "num_heads"),
    ("rwkv6-1.6b", {"attention_hidden_size": 1024}, "attention_hidden_size"),
    ("minimax-m1", {"attn_type_list": [1] * 79}, "attn_type_list"),
    ("minimax-m2", {"attn_type_list": [0] + [1] * 61}, "attn_type_list"),
    ("hunyuan-a13b", {"moe_topk": [8] * 31}, "moe_topk"),
    ("hunyuan-a13b", {"moe_topk": [8] * 31 + [7]}, "moe_topk"),
    ("step-3.5-flash", {"moe_layers_enum": "1,x"}, "moe_layers_enum"),
    ("step-3.5-flash", {"moe_layers_enum": "1,99"}, "moe_layers_enum"),
    ("mimo-v2-flash", {"swa_num_key_value_heads": 7}, "swa_num_key_value_heads"),
    ("granite-4.0-h-small", {"layer_types": ["mamba"] * 39}, "layer_types"),
    ("ernie-4.5-21b-a3b", {"moe_layer_start_index": 99}, "moe_layer_start_index"),
    ("qwen-7b", {"intermediate_size": 11}, "intermediate_size"),
    ("opt-13b", {"word_embed_proj_dim": 512}, "word_embed_proj_dim"),
    ("mpt-7b", {"no_bias": False}, "no_bias"),
]


@pytest.mark.parametrize(("name", "changes", "key"), CONTRADICTIONS)
def test_keys_that_contradict_each_other_are_refused_by_name(name: str, changes: dict[str, Any], key: str) -> None:
    assert refused(config(name, **changes)).key == key


NESTED_CONTRADICTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("gemma-4-e2b", {"num_kv_shared_layers": 35}, "text_config.num_kv_shared_layers"),
    ("gemma-4-26b-a4b", {"num_global_key_value_heads": 3}, "text_config.num_global_key_value_heads"),
    ("qwen3.5-27b", {"linear_num_value_heads": 40}, "text_config.linear_num_value_heads"),
    ("llama-4-maverick", {"no_rope_layers": [1, 0]}, "text_config.no_rope_layers"),
    (
        "kimi-k3",
        {"linear_attn_config": {"kda_layers": [1], "full_attn_layers": [2]}},
        "text_config.linear_attn_config.kda_layers",
    ),
]


@pytest.mark.parametrize(("name", "changes", "key"), NESTED_CONTRADICTIONS)
def test_contradictions_inside_a_block_are_named_with_its_path(name: str, changes: dict[str, Any], key: str) -> None:
    assert refused(nested(name, **changes)).key == key


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"])
def test_the_block_around_may_repeat_a_size_but_not_contradict_it(key: str) -> None:
    given = config("qwen3.5-27b")
    inner = given["text_config"][key]
    assert read_config(given | {key: inner}, "Mine").architecture == read_config(given, "Mine").architecture
    assert refused(given | {key: inner + 1}).key == key


def test_a_tied_head_may_be_said_inside_or_outside() -> None:
    given = config("qwen3.5-0.8b")
    inner = {key: value for key, value in given["text_config"].items() if key != "tie_word_embeddings"}
    for outside, inside, tied in ((True, None, True), (None, True, True), (False, None, False), (None, None, False)):
        block = inner if inside is None else inner | {"tie_word_embeddings": inside}
        reading = read_config(given | {"tie_word_embeddings": outside, "text_config": block}, "Mine")
        assert reading.architecture.tied_embeddings is tied
    both = read_config(
        given | {"tie_word_embeddings": False, "text_config": inner | {"tie_word_embeddings": True}}, "Mine"
    )
    assert both.architecture.tied_embeddings
    assert any("twice" in notice for notice in both.notices)


def test_a_window_longer_than_the_context_is_full_attention_with_a_notice() -> None:
    reading = read_config(config("phi-4-mini"), "Phi")
    (group,) = reading.architecture.layers
    assert isinstance(group.mixer, GroupedAttention)
    assert group.mixer.window is None
    assert any("full attention" in notice for notice in reading.notices)


def test_sizes_that_are_only_assumed_are_marked() -> None:
    assumed = {f.name for f in read_config(config("qwen3-next-80b-a3b"), "Next").fields if f.origin is Origin.ASSUMED}
    assert {"mtp_layers", "state_dtype"} <= assumed
    assert not [f for f in read().fields if f.origin is Origin.ASSUMED]


def test_copies_in_the_files_are_kept_apart_from_what_is_loaded() -> None:
    reading = read_config(config("deepseek-v3"), "V3")
    assert reading.mtp is not None
    assert reading.mtp.duplicate_params == 2 * 129_280 * 7168
    for name, copies in (("glm-4.5", 2 * 151_552 * 5120), ("glm-4.6", None)):
        mtp = read_config(config(name), name).mtp
        assert mtp is not None
        assert mtp.duplicate_params == copies


def test_what_the_keys_speak_of_and_the_files_have_not_is_a_notice() -> None:
    reading = read_config(config("minimax-m2", use_mtp=True, num_mtp_modules=3), "M2")
    assert reading.mtp is None
    assert any("no such layers" in notice for notice in reading.notices)


def test_families_have_ids_of_their_own_and_model_types_once() -> None:
    assert len(BY_MODEL_TYPE) == sum(len(family.model_types) for family in FAMILIES.values())
    assert all(family.id == key for key, family in FAMILIES.items())
    assert not set(BY_MODEL_TYPE) & set(NOT_COMPUTED)


def test_a_reading_of_plain_json_is_the_same() -> None:
    for name in ("qwen3.5-27b", "kimi-k3", "llama-3.3-nemotron-super-49b"):
        text = json.dumps(config(name))
        assert read_config(json.loads(text), name) == read_config(config(name), name)
    assert entries()
