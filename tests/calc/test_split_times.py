"""A model split over GPUs does the work of the whole one: no split is faster than that work divided among its GPUs."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.calc.deployment import Deployment
from app.calc.dtypes import Dtype
from app.calc.measure import measure
from app.calc.model.architecture import Architecture
from app.calc.model.layers.experts import ExpertGroup, Experts
from app.calc.model.layers.parts import OperatorName, Weights
from app.calc.model.split import Split, SplitError
from app.calc.time.operators import Operator, decode_operators, prefill_operators
from app.calc.time.phase import ceiling_s
from tests.calc.strategies import repeatable
from tests.factories import BF16, deployment, h200_sxm, llama_3_1_8b, shipped_catalog, workload

CATALOG = shipped_catalog()
A_ULP = 1e-9
MODELS = st.sampled_from(
    [
        "llama-3.1-8b",
        "qwen3-30b-a3b",
        "deepseek-v3",
        "gpt-oss-120b",
        "gemma-3-27b",
        "mixtral-8x7b",
        "qwen3.5-35b-a3b",
        "kimi-linear-48b-a3b",
        "llama-4-scout",
    ]
)
SPLITS = st.builds(
    Split,
    tensor=st.sampled_from([1, 2, 4, 8]),
    pipeline=st.sampled_from([1, 2, 4]),
    data=st.sampled_from([1, 2, 8]),
    expert=st.sampled_from([1, 2, 8, 64]),
    decode_context=st.sampled_from([1, 1, 2, 8]),
)
contexts = st.integers(1, 100_000).map(float)


def whole_of(model: str) -> Deployment:
    architecture = CATALOG.architectures[model]
    return deployment(
        architecture=architecture,
        accelerator=h200_sxm(),
        precision=replace(BF16, weights=CATALOG.plans[model], compute=Dtype.BF16),
    )


def split_of(whole: Deployment, split: Split) -> Deployment:
    try:
        split.check()
        whole.architecture.split(split)
    except SplitError:
        assume(False)
    assume(split.expert == 1 or whole.architecture.has_experts)
    assume(split.pipeline <= whole.architecture.n_layers)
    return replace(whole, split=split)


def totals(operators: list[Operator], *names: OperatorName) -> tuple[float, float]:
    chosen = [op for op in operators if not names or op.name in names]
    return sum(float(op.flops) for op in chosen), sum(float(op.bytes) for op in chosen)


@repeatable
@given(MODELS, SPLITS, st.integers(1, 8), contexts)
def test_a_decode_step_of_all_gpus_does_no_less_than_the_whole(
    model: str, split: Split, times: int, context: float
) -> None:
    whole = whole_of(model)
    asked = split_of(whole, split)
    parts = split.data * split.pipeline  # groups of sequences that are on their way at a time
    batch = float(parts * times)
    flops, moved = totals(decode_operators(whole, batch, context))
    own_flops, own_moved = totals(decode_operators(asked, batch, context))
    # Each of `pipeline` groups passes all stages, on `tensor` × `data` GPUs.
    passes = split.tensor * split.data * split.pipeline
    assert passes * own_flops >= flops * (1 - A_ULP)
    assert passes * own_moved >= moved * (1 - A_ULP)


@repeatable
@given(MODELS, SPLITS, st.integers(1, 500), contexts)
def test_a_step_is_never_faster_than_the_work_divided_by_the_gpus(
    model: str, split: Split, batch: int, context: float
) -> None:
    """Bytes and FLOPs of every operator, at the card's peaks; whatever the batch, and however few sequences."""
    whole = whole_of(model)
    asked = split_of(whole, split)
    step = float(ceiling_s(decode_operators(asked, float(batch), context), asked.accelerator))
    for operators in (decode_operators(whole, float(batch), context),):
        for name in {op.name for op in operators}:
            flops, moved = totals(operators, name)
            dtypes = {op.dtype for op in operators if op.name is name}
            peak = max(asked.accelerator.peak(dtype) for dtype in dtypes)
            least = max(flops / peak, moved / asked.accelerator.bandwidth_bytes_per_s)
            assert step >= least / split.gpus * (1 - A_ULP), name


@repeatable
@given(MODELS, SPLITS, st.integers(1, 20_000).map(float), st.integers(0, 20_000).map(float))
def test_a_prefill_of_all_gpus_does_no_less_than_the_whole(
    model: str, split: Split, prompt: float, cached: float
) -> None:
    whole = whole_of(model)
    asked = split_of(whole, split)
    flops, _ = totals(prefill_operators(whole, prompt, cached))
    alone, _ = totals(prefill_operators(asked, prompt, cached))
    assert split.tensor * split.data * alone >= flops * (1 - A_ULP)
    # All ranks with a prompt each: the attention of their own, the experts of all.
    together, _ = totals(prefill_operators(asked, prompt, cached, float(split.data)))
    assert split.tensor * together >= flops * (1 - A_ULP)


@repeatable
@given(MODELS, SPLITS, st.sampled_from([1, 2, 3]), st.integers(1, 2000), st.integers(1, 20_000), st.integers(1, 2000))
def test_throughput_is_never_more_than_the_arithmetic_of_all_gpus(
    model: str, split: Split, replicas: int, users: int, prompt: int, output: int
) -> None:
    """Little's law on the whole: every answer has its prefill and its steps, at the peak of every GPU together."""
    whole = whole_of(model)
    asked = split_of(whole, split)
    running = users * replicas * split.data * split.pipeline  # evenly spread, none left over
    asked = replace(asked, replicas=replicas, workload=workload(prompt, output, running))
    found = measure(asked).serving
    steps, card = decode_operators(whole, 1.0, prompt + output / 2), asked.accelerator
    dense = [op for op in steps if op.name is not OperatorName.EXPERTS]
    experts = [op for op in steps if op.name is OperatorName.EXPERTS]
    answer_s = output * sum(float(op.flops) / card.peak(op.dtype) for op in (*dense, *experts))
    answer_s += sum(float(op.flops) / card.peak(op.dtype) for op in prefill_operators(whole, float(prompt)))
    most = asked.gpus / answer_s * output
    assert found.output_tokens_per_s.ceiling <= most * (1 + 1e-6)


def experts_of(architecture: Architecture) -> list[Experts]:
    return [b for group in architecture.layers for b in group.feed_forwards if isinstance(b, Experts)]


def stacks(block: Experts | ExpertGroup, hidden: int) -> list[Weights]:
    return [weights for weights in block.weights(hidden) if weights.operator is OperatorName.EXPERTS]


@pytest.mark.parametrize("model", ["deepseek-v3", "qwen3-30b-a3b", "gpt-oss-120b", "mixtral-8x7b"])
@pytest.mark.parametrize(
    "split",
    [Split(8), Split(8, expert=8), Split(8, expert=2), Split(2, data=4), Split(2, data=4, expert=8), Split(1, data=2)],
)
@pytest.mark.parametrize("tokens", [1.0, 7.0, 512.0])
def test_experts_of_all_gpus_sum_to_the_whole(model: str, split: Split, tokens: float) -> None:
    """FLOPs, and bytes of the experts that a step touches: E ÷ g experts a group, of which a token meets k ÷ g."""
    architecture = CATALOG.architectures[model]
    block, hidden = experts_of(architecture)[0], architecture.hidden_size
    own = block.split(split)
    gpus = split.expert_gpus
    for whole, part in zip(stacks(block, hidden), stacks(own, hidden), strict=True):
        if not whole.is_matrix:
            continue
        assert gpus * part.stored == whole.stored
        assert gpus * part.flops == pytest.approx(whole.flops, rel=1e-12)
        touched = gpus * part.params * float(part.touched(tokens))
        assert touched == pytest.approx(whole.params * float(whole.touched(tokens)), rel=1e-9)


@pytest.mark.parametrize("split", [Split(4, data=2, expert=8), Split(1, data=8, expert=8), Split(8, expert=8)])
def test_one_expert_a_gpu_is_read_as_often_as_it_is_chosen(split: Split) -> None:
    """Mixtral: 2 of 8 experts; a single token meets each with a chance of a quarter."""
    block = experts_of(CATALOG.architectures["mixtral-8x7b"])[0]
    (part,) = stacks(block.split(split), 4096)
    assert (part.copies, part.chosen) == (1, 0.25)
    assert [part.touched(tokens) for tokens in (1.0, 2.0)] == [0.25, 1 - 0.75**2]
    whole = whole_of("mixtral-8x7b")
    asked = replace(whole, split=split)
    for batch in (float(split.data), 64.0):
        own = totals(decode_operators(asked, batch, 1000.0), OperatorName.EXPERTS)
        all_of_it = totals(decode_operators(whole, batch, 1000.0), OperatorName.EXPERTS)
        assert [8 * size for size in own] == pytest.approx(all_of_it, rel=1e-12)


def test_a_group_that_does_not_divide_is_rounded_up() -> None:
    part = Experts(10, 2, 100).split(Split(4, expert=4))
    (found,) = stacks(part, 8)
    assert (found.copies, found.chosen) == (3, 0.5)
    assert part.label == "2 of 10 experts"
    with pytest.raises(SplitError, match="not split again"):
        part.split(Split(2))
    assert part.split(Split()) == part


def test_data_ranks_share_out_sequences_and_not_attention() -> None:
    whole = deployment(architecture=llama_3_1_8b())
    asked = replace(whole, split=Split(data=4))
    assert totals(decode_operators(asked, 64.0, 4096.0)) == totals(decode_operators(whole, 16.0, 4096.0))
    # With fewer sequences than ranks one rank still has one.
    assert totals(decode_operators(asked, 2.0, 4096.0)) == totals(decode_operators(whole, 1.0, 4096.0))


def test_pipeline_stages_work_on_parts_of_the_batch() -> None:
    whole = deployment(architecture=llama_3_1_8b())
    asked = replace(whole, split=Split(pipeline=4))
    assert totals(decode_operators(asked, 64.0, 4096.0)) == totals(decode_operators(whole, 16.0, 4096.0))
    one = measure(replace(whole, workload=workload(concurrency=1))).serving
    four = measure(replace(asked, workload=workload(concurrency=1))).serving
    # A token passes all stages; a prompt is there once every stage has had its share, chunk by chunk.
    assert four.tpot_s.ceiling == one.tpot_s.ceiling
    assert four.ttft_s.ceiling == one.ttft_s.ceiling / 4


def test_context_ranks_share_out_what_is_read_of_the_cache() -> None:
    model = whole_of("deepseek-v3")
    alone, shared = (replace(model, split=Split(8, decode_context=ranks)) for ranks in (1, 8))
    names = (OperatorName.ATTENTION,)
    before, after = (totals(decode_operators(one, 16.0, 50_000.0), *names) for one in (alone, shared))
    assert after[1] == before[1] / 8
    assert after[0] == before[0]  # each computes the scores of all heads with an eighth of the tokens
    assert before[1] == 61 * 576 * 2 * 50_000 * 16


def test_replicas_serve_side_by_side() -> None:
    one, three = deployment(), deployment(replicas=3, workload=workload(concurrency=192))
    single, many = measure(one).serving, measure(three).serving
    assert many.tpot_s == single.tpot_s
    assert many.output_tokens_per_s.ceiling == pytest.approx(3 * single.output_tokens_per_s.ceiling, rel=1e-12)
    uneven = measure(deployment(replicas=3, workload=workload(concurrency=193))).serving
    assert uneven.tpot_s == single.tpot_s  # that of the least busy replica, which keeps it a floor


def test_experts_shared_by_data_ranks_work_on_the_prompts_of_all() -> None:
    """Qwen3-30B-A3B on 2 GPUs: with a prompt each, a GPU has half the experts' work of two prompts."""
    whole = whole_of("qwen3-30b-a3b")
    asked = replace(whole, split=Split(data=2, expert=2))
    experts = (OperatorName.EXPERTS,)
    of_one, _ = totals(prefill_operators(whole, 1000.0), *experts)
    assert totals(prefill_operators(asked, 1000.0), *experts)[0] == pytest.approx(of_one / 2, rel=1e-12)
    assert totals(prefill_operators(asked, 1000.0, 0.0, 2.0), *experts)[0] == pytest.approx(of_one, rel=1e-12)
