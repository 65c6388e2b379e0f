"""RWKV-6 and 7: the rules of their classes for heads, widths, thin matrices and the first layer."""

from typing import Any

import pytest

from app.calc.model.architecture import SidePath
from app.calc.model.layers.dense import ChannelMix
from app.calc.model.layers.rwkv import Rwkv6, Rwkv7
from app.calc.model.parameters import count_parameters
from app.checkpoint.keys import Origin
from app.checkpoint.reading import Reading, read_config
from tests.checkpoint.published import config

ORIGINAL = {
    "model_type": "rwkv6",
    "attention_hidden_size": 2048,
    "head_size": 64,
    "head_size_divisor": 8,
    "hidden_size": 2048,
    "intermediate_size": None,
    "num_attention_heads": 64,
    "num_hidden_layers": 24,
    "rescale_every": 6,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 65_536,
}
"""A configuration under the keys of the original class, which calls the width of a head its number of heads."""


def read(**changes: Any) -> Reading:
    return read_config(config("rwkv7-1.5b", **changes), "RWKV-7")


def test_the_first_layer_takes_no_values_over() -> None:
    architecture = read().architecture
    first, others = architecture.layers
    assert (first.count, others.count) == (1, 23)
    assert first.mixer == Rwkv7(32, 64, 2048, 96, 96, 256)
    assert others.mixer == Rwkv7(32, 64, 2048, 96, 96, 256, 64)
    assert others.feed_forwards == (ChannelMix(8_192),)
    assert architecture.side_paths == (SidePath("embedding norm", 0, vectors=2 * 2_048),)
    assert architecture.norm_bias
    assert not architecture.tied_embeddings


def test_heads_are_as_many_as_fit_whatever_the_file_says() -> None:
    reading = read(num_heads=99, value_dim=[2048] * 24)
    assert reading.architecture == read().architecture
    heads = next(field for field in reading.fields if field.name == "n_heads")
    assert (heads.value, heads.origin) == (32, Origin.DERIVED)
    assert reading.unread == ()


def test_a_width_that_is_not_given_is_a_multiple_of_the_hidden_size() -> None:
    assert read(intermediate_size=...).architecture == read().architecture
    narrow = read(intermediate_size=..., hidden_ratio=3.51).architecture.layers[0].feed_forwards
    assert narrow == (ChannelMix(7_200),)  # 7,188, rounded up to 32


def test_norms_without_a_bias_are_half_as_many_parameters() -> None:
    architecture = read(norm_bias=False).architecture
    assert not architecture.norm_bias
    assert architecture.side_paths == (SidePath("embedding norm", 0, vectors=2_048),)


def test_rwkv6_is_the_same_model_under_the_keys_of_either_class() -> None:
    newer, original = read_config(config("rwkv6-1.6b"), "Finch"), read_config(ORIGINAL, "Finch")
    assert original.architecture.layers == newer.architecture.layers
    assert count_parameters(original.architecture).text == 1_599_873_024
    (group,) = original.architecture.layers
    assert group.mixer == Rwkv6(32, 64, 2048, 32, 64)
    assert group.feed_forwards == (ChannelMix(7_168, receptance=True),)
    assert newer.unread == original.unread == ()


@pytest.mark.parametrize(("hidden", "mix", "decay"), [(2560, 32, 64), (4096, 64, 128)])
def test_thin_matrices_of_the_original_class_are_twice_as_wide_at_4096(hidden: int, mix: int, decay: int) -> None:
    given = ORIGINAL | {"hidden_size": hidden, "attention_hidden_size": hidden}
    (group,) = read_config(given, "Finch").architecture.layers
    assert group.mixer == Rwkv6(hidden // 64, 64, hidden, mix, decay)
