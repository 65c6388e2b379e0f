"""The class that a file names says whether there is a head over the vocabulary, and whether it is a model at all."""

from typing import Any

import pytest

from app.calc.model.parameters import count_parameters
from app.checkpoint.reading import ConfigError, Reading, read_config
from tests.checkpoint.published import config

HEAD = 128_256 * 4096


def read(*architectures: Any, **changes: Any) -> Reading:
    return read_config(config("llama-3.1-8b", architectures=list(architectures), **changes), "Mine")


def total(reading: Reading) -> int:
    return count_parameters(reading.architecture).total


WITH_HEAD = total(read("LlamaForCausalLM"))


@pytest.mark.parametrize(
    ("name", "changes", "labels"),
    [
        ("LlamaForSequenceClassification", {"id2label": {"0": "LABEL_0"}}, 4096),
        ("LlamaForSequenceClassification", {"num_labels": 5}, 5 * 4096),
        ("LlamaForSequenceClassification", {}, 2 * 4096),
        ("LlamaForTokenClassification", {"num_labels": 5}, 5 * 4096 + 5),
        ("LlamaModel", {}, 0),
    ],
)
def test_a_class_without_a_head_has_none(name: str, changes: dict[str, Any], labels: int) -> None:
    reading = read(name, **changes)
    assert total(reading) == WITH_HEAD - HEAD + labels
    assert any(name in notice and "no head over the vocabulary" in notice for notice in reading.notices)


def test_labels_that_make_no_sense_are_not_counted_and_told() -> None:
    reading = read("LlamaForSequenceClassification", num_labels="many")
    assert total(reading) == WITH_HEAD - HEAD
    assert any("classifier" in notice and "not counted" in notice for notice in reading.notices)


def test_a_tied_head_is_no_parameters_to_leave_out() -> None:
    reading = read("LlamaModel", tie_word_embeddings=True)
    assert total(reading) == WITH_HEAD - HEAD
    assert any("no head over the vocabulary" in notice for notice in reading.notices)


@pytest.mark.parametrize(
    "name", ["LlamaForCausalLM", "SomethingModel", "LlamaLMHeadModel", 5, None, "", ["LlamaModel"]]
)
def test_other_classes_have_their_head(name: Any) -> None:
    assert total(read(name)) == WITH_HEAD


def test_a_class_of_chatglm_that_is_called_a_model_has_its_head() -> None:
    given = config("chatglm3-6b")
    plain = count_parameters(read_config(given, "Mine").architecture)
    named = count_parameters(read_config(given | {"architectures": ["ChatGLMModel"]}, "Mine").architecture)
    assert named == plain


def test_the_class_around_a_block_counts() -> None:
    given = {"model_type": "llava", "text_config": {"model_type": "llama"}}
    whole, bare = (read_config(given | {"architectures": [name]}, "Mine") for name in ("LlavaForX", "LlavaModel"))
    assert total(whole) - total(bare) == 32_000 * 4096


@pytest.mark.parametrize(
    "name",
    [
        "LlamaForCausalLMEagle",
        "LlamaForCausalLMEagle3",
        "Eagle3LlamaForCausalLM",
        "EagleModel",
        "MedusaModel",
        "Eagle3Speculator",
        "Eagle3DraftModel",
        "MLPSpeculatorPreTrainedModel",
        "DeepseekV3ForCausalLMNextN",
        "DeepSeekMTPModel",
    ],
)
@pytest.mark.parametrize("model_type", ["llama", "mine", None])
def test_a_head_that_drafts_for_another_model_is_refused_by_name(name: str, model_type: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        read(name, model_type=model_type)
    assert type(caught.value) is ConfigError
    assert caught.value.key == "architectures"
    assert name in caught.value.message


@pytest.mark.parametrize("key", ["draft_vocab_size", "eagle_config", "medusa_num_heads", "speculators_model_type"])
def test_keys_of_a_draft_are_refused_by_name(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read("LlamaForCausalLM", **{key: 32_000})
    assert caught.value.key == key


@pytest.mark.parametrize("model_type", ["eagle", "medusa"])
def test_a_model_type_of_a_draft_is_refused_by_name(model_type: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(model_type=model_type)
    assert type(caught.value) is ConfigError
    assert (caught.value.key, model_type in caught.value.message) == ("model_type", True)


@pytest.mark.parametrize("name", ["Eagle2ForCausalLM", "Eagle2_5_VLForConditionalGeneration"])
def test_a_vision_model_of_that_name_is_no_draft(name: str) -> None:
    assert total(read(name)) == WITH_HEAD
