"""How many GPUs a split takes, and how layers are cut into pipeline stages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.dtypes import Dtype
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.model.split import ONE_GPU, Split, SplitError, stage_sizes
from tests.calc.strategies import repeatable
from tests.factories import shipped_catalog


def test_a_replica_is_tensor_times_pipeline_times_data() -> None:
    split = Split(tensor=4, pipeline=3, data=2, expert=8, decode_context=2)
    assert split.gpus == 24
    assert split.expert_gpus == 8  # those of one stage
    assert split.expert_width_ranks == 1
    assert (ONE_GPU.gpus, ONE_GPU.expert_gpus, ONE_GPU.expert_width_ranks) == (1, 1, 1)


@pytest.mark.parametrize(
    ("split", "width_ranks"),
    [(Split(8), 8), (Split(8, expert=2), 4), (Split(2, data=8, expert=16), 1), (Split(2, data=8), 16)],
)
def test_inside_an_expert_group_the_width_is_divided(split: Split, width_ranks: int) -> None:
    assert split.expert_width_ranks == width_ranks
    assert split.expert * split.expert_width_ranks == split.expert_gpus


def test_the_words_name_what_is_larger_than_one() -> None:
    assert ONE_GPU.words == ""
    assert Split(8, 2, 1, 1, 1).words == "TP 8, PP 2"
    assert Split(2, 3, 4, 8, 2).words == "TP 2, PP 3, DP 4, EP 8, DCP 2"
    assert Split(data=1024).words == "DP 1,024"


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (Split(4, expert=3), "3 expert groups do not divide 4 GPUs of a stage."),
        (Split(2, data=2, expert=8), "8 expert groups do not divide 4 GPUs of a stage."),
        (Split(4, decode_context=3), "3 context ranks do not divide 4 tensor ranks."),
        (Split(2, data=8, decode_context=4), "4 context ranks do not divide 2 tensor ranks."),
    ],
)
def test_sizes_that_do_not_go_together_are_refused(split: Split, message: str) -> None:
    with pytest.raises(SplitError, match=message):
        split.check()


@pytest.mark.parametrize(
    "split", [ONE_GPU, Split(8, 2, 1, 4, 8), Split(2, data=8, expert=16), Split(6, expert=3, decode_context=2)]
)
def test_sizes_that_go_together_pass(split: Split) -> None:
    split.check()


@pytest.mark.parametrize(
    ("model", "tensor", "ranks", "is_possible"),
    [
        ("llama-3.1-8b", 8, 2, False),  # each of 8 KV heads is there once
        ("llama-3.1-8b", 16, 2, True),
        ("llama-3.1-8b", 32, 4, True),
        ("llama-3.1-8b", 32, 8, False),
        ("deepseek-v3", 8, 8, True),  # a latent is on every rank
        ("gpt-oss-120b", 16, 2, True),
        ("kimi-linear-48b-a3b", 8, 8, True),  # states are no rows
    ],
)
def test_context_ranks_share_out_copies_and_nothing_else(
    model: str, tensor: int, ranks: int, is_possible: bool
) -> None:
    """Else the cards together would hold less than the cache. vLLM allows tensor ÷ KV heads context ranks."""
    architecture, split = shipped_catalog().architectures[model], Split(tensor, decode_context=ranks)
    if not is_possible:
        with pytest.raises(SplitError, match=f"{ranks} context ranks share out copies of a cache"):
            architecture.split(split)
        return
    held = tensor * float(kv_bytes_per_sequence(architecture.split(split), 8192 / ranks, Dtype.BF16))
    assert held >= float(kv_bytes_per_sequence(architecture, 8192, Dtype.BF16)) * (1 - 1e-12)


@pytest.mark.parametrize(
    ("layers", "stages", "sizes"),
    [
        (61, 1, (61,)),
        (61, 2, (31, 30)),  # DeepSeek-V3 on two nodes
        (62, 4, (15, 16, 16, 15)),
        (63, 4, (16, 16, 16, 15)),
        (32, 4, (8, 8, 8, 8)),
        (5, 4, (1, 1, 2, 1)),
        (4, 4, (1, 1, 1, 1)),
    ],
)
def test_layers_of_each_stage(layers: int, stages: int, sizes: tuple[int, ...]) -> None:
    assert stage_sizes(layers, stages) == sizes


def test_more_stages_than_layers_are_refused() -> None:
    with pytest.raises(SplitError, match="3 layers cannot be cut into 4 pipeline stages"):
        stage_sizes(3, 4)


@repeatable
@given(st.integers(1, 500), st.integers(1, 500))
def test_every_layer_stands_on_one_stage_and_stages_differ_by_one(layers: int, stages: int) -> None:
    if stages > layers:
        with pytest.raises(SplitError):
            stage_sizes(layers, stages)
        return
    sizes = stage_sizes(layers, stages)
    assert len(sizes) == stages
    assert sum(sizes) == layers
    assert max(sizes) - min(sizes) <= 1
    assert sizes[-1] == min(sizes)  # the last one has the head besides
