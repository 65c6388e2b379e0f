"""What guesses: the sizes of an EAGLE-3 head by hand, and a model's own layers as a model of their own."""

import pytest

from app.calc.layers.dense import DenseFeedForward
from app.calc.layers.grouped_attention import GroupedAttention
from app.calc.parameters import count_parameters, weight_bytes
from app.calc.rank_memory import draft_split
from app.calc.split import ONE_GPU, Split
from app.calc.techniques.drafters import EAGLE_VOCABULARY, eagle_head, mtp_drafter
from tests.factories import BF16, answer_to, llama_3_1_8b, shipped_catalog


def test_the_head_of_llama_3_1_8b_by_hand() -> None:
    draft = eagle_head(llama_3_1_8b())
    counts = count_parameters(draft.architecture)
    # Joined features 3 × 4,096 × 4,096; query, key and value over the embedding beside them once more; the layer's own.
    features = 3 * 4096 * 4096
    attention = (4096 + 2 * 1024) * 4096 * 2 + 4096 * 4096
    block, head = 3 * 4096 * 14_336, 4096 * EAGLE_VOCABULARY
    norms = 3 * 4096
    assert (features, attention, block, head) == (50_331_648, 67_108_864, 176_160_768, 131_072_000)
    assert counts.total == features + attention + block + head + norms
    assert counts.total == pytest.approx(0.42e9, rel=0.02)
    assert weight_bytes(counts, draft.weights) == pytest.approx(0.85e9, rel=0.01)  # the published head's file


def test_a_head_takes_the_sizes_of_its_model_where_it_has_them() -> None:
    architectures = shipped_catalog().architectures
    (layers,) = eagle_head(architectures["llama-3.1-70b"]).architecture.layers
    assert layers.mixer == GroupedAttention(64, 8, 128)
    assert layers.feed_forwards == (DenseFeedForward(28_672),)
    (layers,) = eagle_head(architectures["deepseek-v3"]).architecture.layers
    assert layers.mixer == GroupedAttention(56, 8, 128)  # 7,168 wide, heads of 128, groups of four or more
    assert layers.feed_forwards == (DenseFeedForward(18_432),)  # of its first three layers
    (layers,) = eagle_head(architectures["gpt-oss-120b"]).architecture.layers
    assert layers.feed_forwards == (DenseFeedForward(int(3.5 * 2880)),)


@pytest.mark.parametrize("model", shipped_catalog().architectures)
def test_every_model_of_the_catalog_has_a_head_much_smaller_than_itself_or_is_small(model: str) -> None:
    architecture = shipped_catalog().architectures[model]
    head = count_parameters(eagle_head(architecture).architecture)
    whole = count_parameters(architecture)
    assert 0 < head.total < max(0.35 * whole.total, 1.5e9)


def test_a_vocabulary_smaller_than_the_heads_is_kept() -> None:
    small = answer_to({"config": {**_LLAMA, "vocab_size": 1000}}).evaluation.deployment.architecture
    assert eagle_head(small).architecture.vocab_size == 1000


_LLAMA = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "num_hidden_layers": 2,
}


def test_own_layers_are_those_of_the_checkpoint_with_the_models_head() -> None:
    catalog = shipped_catalog()
    answered = answer_to(
        {"id": "deepseek-v3", "mtp": True}, "h200-sxm", parallelism={"tensor": 8}
    ).evaluation.deployment.architecture
    plan = catalog.plans["deepseek-v3"]
    drafter = mtp_drafter(answered, plan)
    assert drafter is not None
    assert drafter.architecture.n_layers == 1
    assert drafter.architecture.vocab_size == answered.vocab_size
    assert drafter.weights is plan
    joined = drafter.architecture.side_paths[0].params
    assert joined == 2 * 7168 * 7168 + 3 * 7168  # embedding and hidden state joined, and three norms
    assert mtp_drafter(catalog.architectures["llama-3.1-8b"], BF16.weights) is None


def test_what_does_not_divide_stands_whole_on_each_gpu() -> None:
    head = eagle_head(shipped_catalog().architectures["deepseek-v3"]).architecture
    assert draft_split(head, 8) == Split(8)
    assert draft_split(head, 16) == ONE_GPU  # 56 heads among 16
    assert draft_split(head, 1) == ONE_GPU
