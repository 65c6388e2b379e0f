"""LFM2, Falcon-H1 and RecurrentGemma: the rules of their classes for widths, lists and what is left out."""

from typing import Any

import pytest

from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.grouped_attention import GroupedAttention, QkNorm
from app.calc.model.layers.mamba import Mamba2, ParallelMamba2
from app.calc.model.layers.rg_lru import RgLru
from app.calc.model.layers.short_convolution import ShortConvolution
from app.checkpoint.keys import Origin
from app.checkpoint.reading import Reading, read_config
from tests.checkpoint.published import config


def read(name: str, **changes: Any) -> Reading:
    return read_config(config(name, **changes), name)


def width(reading: Reading) -> int:
    (block,) = reading.architecture.layers[0].feed_forwards
    assert isinstance(block, DenseFeedForward)
    return block.intermediate_size


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 4_608),  # 6,656 × 2 ÷ 3 is 4,437, rounded up to 256
        ({"block_ff_dim": 12_288}, 8_192),
        ({"block_ff_dim": 10_240}, 6_912),
        ({"block_ff_dim": ..., "intermediate_size": 6_656}, 4_608),
        ({"intermediate_size": 99}, 4_608),  # the other name wins
        ({"block_auto_adjust_ff_dim": False}, 6_656),
        ({"block_auto_adjust_ff_dim": ...}, 4_608),
        ({"block_multiple_of": 4_096}, 8_192),
        ({"block_ffn_dim_multiplier": 2.0}, 8_960),  # 8,874, rounded up to 256
        ({"block_ffn_dim_multiplier": ...}, 4_608),
        ({"block_ffn_dim_multiplier": None}, 4_437),  # neither factor nor multiple
    ],
)
def test_the_width_of_lfm2_is_two_thirds_of_the_number_given(changes: dict[str, Any], expected: int) -> None:
    assert width(read("lfm2-350m", **changes)) == expected


def test_lfm2_convolves_and_attends_where_the_lists_say_so() -> None:
    listed, indexed = read("lfm2-1.2b"), read("lfm2-350m")
    both = read("lfm2-1.2b", full_attn_idxs=[2, 5, 8, 10, 12, 14])
    assert listed.architecture.order == indexed.architecture.order == both.architecture.order
    convolution, attention = (group.mixer for group in listed.architecture.layers)
    assert convolution == ShortConvolution(2048, 3)
    assert attention == GroupedAttention(32, 8, 64, qk_norm=QkNorm.PER_HEAD)
    assert read("lfm2-1.2b", conv_bias=True, conv_L_cache=4).architecture.layers[0].mixer == ShortConvolution(
        2048, 4, bias=True
    )
    assert listed.architecture.tied_embeddings
    assert not read("lfm2-1.2b", tie_embedding=False, tie_word_embeddings=True).architecture.tied_embeddings
    assert listed.unread == indexed.unread == ()


def test_lfm2_with_experts_begins_with_two_dense_layers() -> None:
    for changes in ({}, {"num_dense_layers": ...}):
        dense, *_ = read("lfm2-8b-a1b", **changes).architecture.layers
        assert (dense.count, dense.feed_forwards) == (2, (DenseFeedForward(7_168),))


def test_falcon_h1_has_a_width_of_its_own_for_the_recurrence() -> None:
    (group,) = read("falcon-h1-0.5b").architecture.layers
    assert group.mixer == ParallelMamba2(GroupedAttention(8, 2, 64), Mamba2(24, 64, 128, 1, gated_norm=False))
    (normed,) = read("falcon-h1-0.5b", mamba_rms_norm=True).architecture.layers
    assert isinstance(normed.mixer, ParallelMamba2)
    assert normed.mixer.mamba.gated_norm
    automatic = read("falcon-h1-0.5b", mamba_d_head="auto")
    assert automatic.architecture == read("falcon-h1-0.5b").architecture
    expanded = read("falcon-h1-0.5b", mamba_d_ssm=..., mamba_d_head="auto", mamba_n_heads=32)
    (group,) = expanded.architecture.layers
    assert isinstance(group.mixer, ParallelMamba2)
    assert group.mixer.mamba.inner == 2 * 1024
    assert read("falcon-h1-0.5b").unread == ()


def test_the_type_of_a_state_that_no_key_gives_is_marked_as_assumed() -> None:
    for name in ("falcon-h1-0.5b", "recurrentgemma-2b"):
        assumed = {field.name for field in read(name).fields if field.origin is Origin.ASSUMED}
        assert "state_dtype" in assumed


def test_recurrent_gemma_repeats_its_pattern_and_halves_its_width() -> None:
    reading = read("recurrentgemma-2b")
    assert reading.architecture.order == (0, 0, 1) * 8 + (0, 0)
    unit, attention = (group.mixer for group in reading.architecture.layers)
    assert unit == RgLru(2560, 10)
    assert attention == GroupedAttention(10, 1, 256, window=2048, output_bias=True)
    assert reading.architecture.layers[0].feed_forwards == (DenseFeedForward(7_680, bias=True),)
    assert read("recurrentgemma-2b", _block_types=..., lru_width=...).architecture == reading.architecture
    attending = read("recurrentgemma-2b", _block_types=["attention"]).architecture
    assert [group.count for group in attending.layers] == [26]
    assert reading.unread == ()
